#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/trace/extent.h"
#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/counterfactual/numbers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Puts `sane` where `value` is `found`: a number, a tensor of one element, or entries of a list.
bool put_sane(c10::IValue& value, double found, double sane) {
  if (is_number(value, found, NumberAs::one_element)) {
    value = with_number(value, sane);
    return true;
  }
  if (!value.isList() || value.isTensorList()) return false;
  bool any = false;
  c10::List<c10::IValue> list = value.toList();
  for (std::size_t i = 0; i < list.size(); ++i) {
    c10::IValue entry = list.get(i);
    if (!put_sane(entry, found, sane)) continue;
    list.set(i, entry);
    any = true;
  }
  return any;
}

/// Puts `sane` where a number, or a tensor of one element, is not finite.
void put_finite(c10::IValue& value, double sane) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.isTensor() && (!value.toTensor().defined() || value.toTensor().dim() > 0)) return;
  for (const double found : {std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity})
    put_sane(value, found, sane);
}

/// Another op's input, scaled.
void add_placebo(const Case& c, std::int32_t op, Change& change) {
  const std::int32_t other = placebo_op(c, op);
  if (other == kNone) return;
  RunOptions options;
  const auto first = static_cast<std::size_t>(c.tensor_arguments(other).front().position);
  options.edit.op_edit[other] = [first](std::vector<c10::IValue>& stack) {
    const at::Tensor t = first < stack.size() ? tensor_of(stack[first]) : at::Tensor();
    if (t.defined() && t.is_floating_point()) stack[first] = t * 0.5;
    return false;
  };
  change.placebo = {options};
  change.placebo_text = "what " + c.op_with_number(other) + " reads halved";
}

}  // namespace

Change replace_setting(const Case& c, std::int32_t op, const Setting& setting) {
  Change change;
  change.text =
      setting.what + " set to " + number_text(setting.sane) + " instead of " + number_text(setting.found);
  change.kind = ChangeKind::hyperparameter;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const std::string name = plain_name(*c.row(op));
  const std::string argument = argument_name(*c.row(op), setting.position);
  const auto edit_at = [&setting](std::size_t position) {
    return [position, found = setting.found, sane = setting.sane](std::vector<c10::IValue>& stack) {
      if (position < stack.size()) put_sane(stack[position], found, sane);
      return false;
    };
  };
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    const OpRow& row = *c.row(i);
    if (row.phase != c.row(op)->phase && row.phase != Phase::backward) continue;
    const std::string other = plain_name(row);
    if (other == name && row.overload == c.row(op)->overload)
      change.options.edit.op_edit[i] = edit_at(setting.position);
    else if (other == name + "_backward")  // has the same setting, as an argument of its own
      if (const auto position = argument_position(row, argument))
        change.options.edit.op_edit[i] = edit_at(*position);
  }
  add_placebo(c, op, change);
  return change;
}

Change replace_bad_numbers(const Case& c, std::int32_t op, Phase phase) {
  Change change;
  change.text = "every number that the " + std::string(phase_name(phase)) +
                " was given and that is not finite set to 1 (factors) or 0";
  change.kind = ChangeKind::hyperparameter;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    // Entries that are no operators (a profiler range, bytes from the host) have no number arguments.
    const bool runs = c.row(i)->name.starts_with("aten::") && !(c.row(i)->flags & (kOpOpaque | kOpFailed));
    if (c.row(i)->phase != phase || !runs) continue;
    const std::string name = plain_name(*c.row(i));
    const double sane = name == "mul" || name == "div" || name == "true_divide" ? 1 : 0;
    change.options.edit.op_edit[i] = [sane](std::vector<c10::IValue>& stack) {
      for (c10::IValue& value : stack) put_finite(value, sane);
      return false;
    };
  }
  add_placebo(c, op, change);
  return change;
}

Change replace_scalar(const Case& c, std::int32_t slot, const std::string& what, double sane) {
  Change change;
  change.text = what + " set to " + number_text(sane);
  change.kind = ChangeKind::hyperparameter;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const auto set = [sane](at::Tensor& storage) {
    const bool number =
        storage.is_floating_point() || at::isIntegralType(storage.scalar_type(), /*includeBool=*/false);
    if (number && storage.numel() > 0) storage.narrow(0, 0, 1).fill_(sane);
  };
  change.options.edit.slot_edit[slot] = set;
  if (const std::int32_t other = placebo_slot(c, slot); other != kNone) {
    RunOptions options;
    options.edit.slot_edit[other] = set;
    change.placebo = {options};
    change.placebo_text = "the first element of " + c.slot_text(other) + " set to " + number_text(sane);
  }
  return change;
}

}  // namespace nanquest
