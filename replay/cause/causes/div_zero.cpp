// DIV_ZERO: division by an exact zero that is data, a count or a variance. Proof: wherever the op made a bad
// element, the recorded denominator is exactly zero, and what came in there was finite. A lost epsilon is
// another cause, a softmax by hand over a row of -Inf too, and so is a division inside a derivative.
#include <ATen/ATen.h>

#include "probe/trace/regions.h"
#include "replay/case/derivative.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

Finding finding(const Case& c, const Elements& e, std::int64_t bad) {
  const std::string_view name = operand_name(*c.op(), e.semantics->argument);
  const at::Tensor denominator = operand(c, c.op_index(), e.semantics->argument);
  Finding f;
  f.source = "x / 0 is infinite and 0 / 0 is NaN (IEEE 754-2019, 7.2 and 7.3)";
  f.evidence.push_back({"denominators exactly zero", std::to_string(count_true(denominator == 0)) + " of " +
                                                         std::to_string(denominator.numel())});
  f.evidence.push_back(
      {"bad elements that stand over a zero", std::to_string(bad) + " of " + std::to_string(bad)});
  std::string what;
  if (const auto both = zero_over_zero(e)) {
    f.evidence.push_back({"of these 0 / 0", std::to_string(*both)});
    what = *both > 0 ? " (0 / 0 gives NaN)" : " (a finite number over zero is infinite)";
  }
  f.explanation = c.op_text(c.op_index()) + " divides by exactly zero in " + count_text(bad, "element") +
                  what + "." + maker_text(c, "The denominator", maker_of(c, c.op_index(), name));
  f.advice =
      "For a count use max(count, 1) and skip samples with nothing to count; for a variance or a norm add "
      "an epsilon that the format can hold.";
  if (is_constant(c, c.op_index(), name))
    f.wanted.push_back(edit_constant(c, c.op_index(), name, 0, 1));
  else
    f.wanted.push_back(guard_argument(c, c.op_index(), name, Guard::zero_to_one));
  return f;
}

std::optional<Finding> examine_div_zero(const Case& c, const Subject&) {
  // A derivative that divides by 0 is singular there: another cause.
  const bool derivative = c.op()->phase == Phase::backward && c.forward_of(c.op_index()) != kNone;
  if (c.op()->node == kCompiledDerivative || (derivative && !is_written_by_hand(*c.op())))
    return std::nullopt;
  const auto e = over_zero(c);
  if (!e) return std::nullopt;
  return finding(c, *e, count_true(e->born));
}

}  // namespace

NANQUEST_CAUSE(div_zero) = {
    .label = Label::div_zero,
    .origins = {Origin::op},
    .ops = {{"div", "other"},
            {"true_divide", "other"},
            {"divide", "other"},
            {"remainder", "other"},
            {"fmod", "other"},
            {"floor_divide", "other"},
            {"reciprocal", "self"},
            {"rsqrt", "self"},
            {"pow", "self"},
            {"addcdiv", "tensor2"}},
    .yields_to = {Label::all_masked_row, Label::eps_underflow, Label::mask_overflow, Label::domain},
    .examine = examine_div_zero,
};

}  // namespace nanquest
