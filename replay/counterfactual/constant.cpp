#include <ATen/ATen.h>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

/// `value` with the number in it replaced; unchanged if it holds none.
c10::IValue with_number(const c10::IValue& value, double number) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1) {
    const at::Tensor& old = value.toTensor();
    const bool whole = !old.is_floating_point() && !old.is_complex();
    at::Tensor other = at::full_like(old, number, whole ? old.options().dtype(at::kDouble) : old.options());
    if (old.unsafeGetTensorImpl()->is_wrapped_number()) other.unsafeGetTensorImpl()->set_wrapped_number(true);
    return other;
  }
  if (value.isScalar() || value.isNone()) return number;
  return value;
}

/// True if `value` is this number as programs write it: not a whole one, not a tensor that was computed in
/// the format of the model.
bool is_number(const c10::IValue& value, double number) {
  if (value.isDouble()) return value.toDouble() == number;
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const at::Tensor& t = value.toTensor();
  return t.dim() == 0 && t.scalar_type() == at::kDouble && t.item<double>() == number;
}

/// True if `value` is this number, written as a whole one or not.
bool is_literal(const c10::IValue& value, double number) {
  if (value.isScalar()) return !value.toScalar().isComplex() && value.toScalar().toDouble() == number;
  if (!value.isTensor() || !value.toTensor().defined() || value.toTensor().dim() > 0) return false;
  const at::Tensor& t = value.toTensor();
  return (t.unsafeGetTensorImpl()->is_wrapped_number() || t.scalar_type() == at::kDouble) &&
         !t.is_complex() && wide(t).item<double>() == number;
}

}  // namespace

Change edit_constant(const Case& c, std::int32_t op, std::string_view argument_name, double from, double to) {
  Change change;
  change.text = std::string(argument_name) + " of " + c.op_text(op) + " " + number_text(to) + " instead of " +
                number_text(from);
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const auto position = argument_position(*c.row(op), argument_name);
  if (!position) return change;
  // An optimizer does to every weight what it does to one: a setting of it stands in each of these ops.
  if (c.row(op)->phase == Phase::optimizer)
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i)
      if (c.row(i)->phase == Phase::optimizer && c.row(i)->name == c.row(op)->name &&
          c.row(i)->overload == c.row(op)->overload)
        change.options.edit.op_edit[i] = [p = *position, from, to](std::vector<c10::IValue>& stack) {
          if (p < stack.size() && is_literal(stack[p], from)) stack[p] = with_number(stack[p], to);
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
        if (is_number(v, from)) v = with_number(v, to);
      return false;
    };
  }
  add_precision_placebo(c, change, op, Precision::fp32);
  return change;
}

}  // namespace nanquest
