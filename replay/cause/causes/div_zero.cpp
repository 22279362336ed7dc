// DIV_ZERO: division by an exact zero that is data, a count or a variance. Proof: numerator finite
// everywhere, and the recorded denominator is exactly zero wherever the output is bad. A lost epsilon is
// another cause, and so is a division inside a derivative.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// Which op made the denominator, in words; "" if none did.
std::string maker_text(const Case& c, const Subject& division) {
  const auto position = argument_position(*c.op(), division.argument);
  std::string text;
  for (const Case::TensorArgument& a : c.tensor_arguments(c.op_index()))
    if (position && static_cast<std::size_t>(a.position) == *position)
      if (const std::int32_t maker = c.producer(a.tensor, c.op_index()); maker != kNone)
        text = " The denominator was made by " + c.op_text(maker) + " (op " + std::to_string(maker) + ").";
  return text;
}

Finding finding(const Case& c, const Subject& division, const at::Tensor& denominator,
                const at::Tensor& numerator, const at::Tensor& zeros, std::int64_t bad) {
  Finding f;
  f.source = "x / 0 is infinite and 0 / 0 is NaN (IEEE 754-2019, 7.2 and 7.3)";
  const std::int64_t n = count_true(wide(denominator) == 0);
  f.evidence.push_back(
      {"denominators exactly zero", std::to_string(n) + " of " + std::to_string(denominator.numel())});
  f.evidence.push_back(
      {"bad elements that stand over a zero", std::to_string(bad) + " of " + std::to_string(bad)});
  std::string what;
  if (numerator.defined()) {
    const auto over = broadcast(wide(numerator) == 0, zeros.sizes());
    const std::int64_t both = over ? count_true(at::logical_and(*over, zeros)) : 0;
    f.evidence.push_back({"of these 0 / 0", std::to_string(both)});
    what = both > 0 ? " (0 / 0 gives NaN)" : " (a finite number over zero is infinite)";
  }
  f.explanation = c.op_text(c.op_index()) + " divides by exactly zero in " + count_text(bad, "element") +
                  what + "." + maker_text(c, division);
  f.advice =
      "For a count use max(count, 1) and skip samples with nothing to count; for a variance or a norm add "
      "an epsilon that the format can hold.";
  f.wanted.push_back(guard_argument(c, c.op_index(), division.argument, Guard::zero_to_one));
  return f;
}

std::optional<Finding> examine(const Case& c, const Subject& division) {
  const OpValues& values = c.values(c.op_index());
  if (values.outputs.empty()) return std::nullopt;
  const at::Tensor denominator = operand_of(argument(c, c.op_index(), division.argument));
  if (!denominator.defined() || !all_finite(denominator)) return std::nullopt;
  // Of 1 / x the numerator is no argument.
  const bool has_numerator = division.argument != "self";
  const at::Tensor numerator = has_numerator ? operand_of(argument(c, c.op_index(), "self")) : at::Tensor();
  if (has_numerator && (!numerator.defined() || !all_finite(numerator))) return std::nullopt;
  const auto zeros = broadcast(wide(denominator) == 0, values.bad_output().sizes());
  const at::Tensor bad = bad_mask(values.bad_output());
  if (!zeros || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*zeros))) > 0)
    return std::nullopt;
  return finding(c, division, denominator, numerator, *zeros, count_true(bad));
}

}  // namespace

NANQUEST_CAUSE(div_zero) = {
    .label = Label::div_zero,
    .origins = {Origin::op},
    .phases = {Phase::forward, Phase::optimizer},
    .ops = {{"div", "other"},
            {"true_divide", "other"},
            {"divide", "other"},
            {"remainder", "other"},
            {"fmod", "other"},
            {"floor_divide", "other"},
            {"reciprocal", "self"},
            {"rsqrt", "self"}},
    .yields_to = {Label::eps_underflow, Label::mask_overflow, Label::domain},
    .examine = examine,
};

}  // namespace nanquest
