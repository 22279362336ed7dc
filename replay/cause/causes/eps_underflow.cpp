// EPS_UNDERFLOW: the denominator was made by adding (or clamping to) an epsilon, and is zero all the same.
// Its proof is not written yet.
#include <ATen/ATen.h>

#include <cmath>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// The op that made what `op` reads as its argument `name`; kNone if it came from outside.
std::int32_t maker_of(const Case& c, std::int32_t op, std::string_view name) {
  const auto position = argument_position(*c.row(op), name);
  for (const Case::TensorArgument& a : c.tensor_arguments(op))
    if (position && static_cast<std::size_t>(a.position) == *position) return c.producer(a.tensor, op);
  return kNone;
}

bool resembles(const Case& c, const Subject& division) {
  std::int32_t maker = maker_of(c, c.op_index(), division.argument);
  if (const OpRow* root = c.row(maker); root && plain_name(*root) == "sqrt")
    maker = maker_of(c, maker, "self");
  const OpRow* op = c.row(maker);
  if (!op) return false;
  const std::string name = plain_name(*op);
  if (name == "clamp" || name == "clamp_min" || name == "maximum") return true;
  if (name != "add") return false;
  const at::Tensor eps = operand_of(argument(c, maker, "other"));
  return eps.defined() && eps.numel() == 1 && std::abs(wide(eps).item<double>()) < 1e-2;
}

}  // namespace

NANQUEST_CAUSE(eps_underflow) = {
    .label = Label::eps_underflow,
    .ops = {{"div", "other"},
            {"true_divide", "other"},
            {"rsqrt", "self"},
            {"reciprocal", "self"},
            {"addcdiv", "tensor2"}},
    .resembles = resembles,
};

}  // namespace nanquest
