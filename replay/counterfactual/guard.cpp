#include <ATen/ATen.h>

#include "replay/cause/case.h"
#include "replay/cause/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

/// A view without expanded dimensions, so that it may be written to.
at::Tensor unexpanded(at::Tensor t) {
  for (std::int64_t d = 0; d < t.dim(); ++d)
    if (t.size(d) > 1 && t.stride(d) == 0) t = t.narrow(d, 0, 1);
  return t;
}

/// Small number whose square root still has a derivative far inside the format.
double root_eps(const at::Tensor& t) {
  return t.scalar_type() == at::kHalf ? 1e-3 : t.scalar_type() == at::kDouble ? 1e-16 : 1e-8;
}

/// Distance from ±1 at which the derivative of acos is finite and representable.
double unit_eps(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kHalf:
      return 2e-3;
    case at::kBFloat16:
      return 1.6e-2;
    case at::kDouble:
      return 1e-12;
    default:
      return 1e-6;
  }
}

void apply(at::Tensor t, Guard guard) {
  switch (guard) {
    case Guard::zero_to_eps:
      t.masked_fill_(t == 0, format_tiny(t).value_or(1));
      return;
    case Guard::zero_to_one:
      t.masked_fill_(t == 0, 1);
      return;
    case Guard::minus_one_to_eps:
      t.masked_fill_(t == -1, -1 + unit_eps(t));
      return;
    case Guard::zero_to_safe_root:
      t.masked_fill_(t == 0, root_eps(t));
      return;
    case Guard::unit_inwards:
      t.masked_fill_(t == 1, 1 - unit_eps(t));
      t.masked_fill_(t == -1, -1 + unit_eps(t));
      return;
  }
}

std::string guard_text(Guard guard) {
  switch (guard) {
    case Guard::zero_to_eps:
      return "zeros raised to the format's smallest normal number before ";
    case Guard::zero_to_one:
      return "zeros replaced by one in the denominator of ";
    case Guard::minus_one_to_eps:
      return "-1 moved to -1 + eps before ";
    case Guard::zero_to_safe_root:
      return "zeros replaced by a small eps before ";
    case Guard::unit_inwards:
      return "±1 moved inwards by a small eps before ";
  }
  return "";
}

RunOptions guarded(std::int32_t op, std::size_t position, Guard guard) {
  RunOptions options;
  options.edit.op_edit[op] = [position, guard](std::vector<c10::IValue>& stack) {
    if (position >= stack.size()) return false;
    for (const at::Tensor& t : tensors_in({stack[position]})) apply(unexpanded(t), guard);
    return false;
  };
  return options;
}

}  // namespace

Change guard_argument(const Case& c, std::int32_t op, std::string_view argument, Guard guard) {
  Change change;
  change.text = guard_text(guard) + c.op_text(op);
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  if (const auto position = argument_position(*c.row(op), argument))
    change.options = guarded(op, *position, guard);
  if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    const auto first = static_cast<std::size_t>(c.tensor_arguments(other).front().position);
    change.placebo = {guarded(other, first, guard)};
    change.placebo_text = guard_text(guard) + c.op_text(other) + " (op " + std::to_string(other) + ")";
  }
  return change;
}

}  // namespace nanquest
