// DIV_ZERO: division by an exact zero that is data, a count or a variance. Proof: wherever the op made a bad
// element, the recorded denominator is exactly zero, and the numerator was finite. A lost epsilon is another
// cause, a softmax by hand over a row of -Inf too, and so is a division inside a derivative, unless the
// forward op that it differentiates divided by that zero.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <string>

#include "probe/trace/regions.h"
#include "replay/case/derivative.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/ignored_targets.h"
#include "replay/cause/lost_bound.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

bool divides(const OpRow& op) {
  static const std::set<std::string> names = {"div",  "true_divide",  "divide",     "remainder",
                                              "fmod", "floor_divide", "reciprocal", "rsqrt",
                                              "pow",  "addcdiv"};
  return names.count(plain_name(op)) > 0;
}

Finding finding(const Case& c, std::int32_t op, const Elements& e, std::int64_t bad) {
  const std::string_view name = operand_name(*c.row(op), e.semantics->argument);
  const at::Tensor denominator = operand(c, op, e.semantics->argument);
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
  const auto ignored = ignored_targets(c, op, name);
  f.explanation = (ignored ? ignored->text + ". " : "") + c.op_text(op) + " divides by exactly zero in " +
                  count_text(bad, "element") + what + "." +
                  maker_text(c, "The denominator", maker_of(c, op, name));
  f.advice = ignored ? ignored->advice
                     : "For a count use max(count, 1) and skip samples with nothing to count; for a variance "
                       "or a norm add "
                       "an epsilon that the format can hold.";
  f.precision = has_no_zeros_in_fp64(c, maker_of(c, op, name));
  if (is_constant(c, op, name))
    f.wanted.push_back(edit_constant(c, op, name, 0, 1));
  else
    f.wanted.push_back(guard_argument(c, op, name, Guard::zero_to_one));
  return f;
}

/// The forward op divided by zero, later ops made the infinity finite again (a function that saturates), and
/// backward multiplies it by the zero gradient.
std::optional<Finding> behind_its_derivative(const Case& c) {
  const std::int32_t forward = c.forward_of(c.op_index());
  const auto e = pole_differentiated(c, Pole::quotient);
  if (!e || !divides(*c.row(forward))) return std::nullopt;
  Finding f = finding(c, forward, *e, count_true(e->born));
  f.op = forward;
  f.phase = Phase::forward;
  f.explanation +=
      " What follows makes something finite of it, as a function that saturates does; backward multiplies it "
      "by the zero that comes back: " +
      c.op_text(c.op_index()) + " (" + c.op()->node + ") gives NaN.";
  return f;
}

std::optional<Finding> examine_div_zero(const Case& c, const Subject&) {
  if (!c.op() || c.op()->node == kCompiledDerivative) return std::nullopt;
  if (auto f = behind_its_derivative(c)) return f;
  // A derivative that divides by 0 is singular there: another cause.
  const bool derivative = c.op()->phase == Phase::backward && c.forward_of(c.op_index()) != kNone;
  if (!divides(*c.op()) || (derivative && !is_written_by_hand(*c.op()))) return std::nullopt;
  const auto e = over_zero(c);
  if (!e) return std::nullopt;
  return finding(c, c.op_index(), *e, count_true(e->born));
}

}  // namespace

NANQUEST_CAUSE(div_zero) = {
    .label = Label::div_zero,
    .origins = {Origin::op},
    .examine = examine_div_zero,
};

}  // namespace nanquest
