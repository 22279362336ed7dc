#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/counterfactual/numbers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {

Change edit_constant(const Case& c, std::int32_t op, std::string_view argument_name, double from, double to) {
  Change change;
  change.text = std::string(argument_name) + " of " + c.op_text(op) + " " + number_text(to) + " instead of " +
                number_text(from);
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const auto position = argument_position(*c.row(op), argument_name);
  if (!position) return change;
  change.edit = SourceEdit{plain_name(*c.row(op)), op, *position, from, exact_text(to)};
  // An optimizer does the same to every weight: its setting is an argument of each of these ops.
  if (c.row(op)->phase == Phase::optimizer)
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i)
      if (c.row(i)->phase == Phase::optimizer && c.row(i)->name == c.row(op)->name &&
          c.row(i)->overload == c.row(op)->overload)
        change.options.edit.op_edit[i] = [p = *position, from, to](std::vector<c10::IValue>& stack) {
          if (p < stack.size() && is_number(stack[p], from, NumberAs::literal))
            stack[p] = with_number(stack[p], to);
          return false;
        };
  change.options.edit.op_edit[op] = [p = *position, to](std::vector<c10::IValue>& stack) {
    if (p < stack.size()) stack[p] = with_number(stack[p], to);
    return false;
  };
  // Its derivative was recorded with the same number.
  for (std::int32_t i = op + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (c.row(i)->phase == Phase::optimizer || c.forward_of(i) != op) continue;
    change.options.edit.op_edit[i] = [from, to](std::vector<c10::IValue>& stack) {
      for (c10::IValue& v : stack)
        if (is_number(v, from, NumberAs::real)) v = with_number(v, to);
      return false;
    };
  }
  add_precision_placebo(c, change, op, Precision::fp32);
  return change;
}

}  // namespace nanquest
