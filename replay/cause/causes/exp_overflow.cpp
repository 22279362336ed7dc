// EXP_OVERFLOW: an exponential function of too large an argument. Proof: at every bad element the op grows
// exponentially in a recorded, finite argument, and log2 of its result, computed without overflow, is larger
// than that of the format's largest number.
#include <ATen/ATen.h>

#include <cmath>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();

/// 2^`log2_size` in words, also if no format can represent it.
std::string size_text(double log2_size) {
  if (log2_size < 1000) return number_text(std::exp2(log2_size));
  return "10^" + number_text(std::round(log2_size * std::log10(2)));
}

/// The change that limits the operand that grows.
Change bound(const Case& c, const Elements& e) {
  const double bits = std::log2(*format_max(e.output));
  if (e.semantics->op != "pow") {
    const auto [low, high] = safe_interval(*e.semantics, e.output);
    return clamp_argument(c, c.op_index(), "self", low, high);
  }
  if (const auto power = number_of(c, c.op_index(), "exponent")) {
    const double largest = std::exp2(bits / 2 / std::abs(*power));
    return clamp_argument(c, c.op_index(), "self", *power < 0 ? 1 / largest : -largest,
                          *power < 0 ? kOpen : largest);
  }
  const double base = std::max(2.0, finite_amax(e.operands[0]));
  const double largest = bits / 2 / std::log2(base);
  return clamp_argument(c, c.op_index(), "exponent", -largest, largest);
}

Finding finding(const Case& c, const Elements& e) {
  const double limit = *format_max(e.output);
  const std::string format = format_name(e.output), name(e.semantics->op);
  const at::Tensor size = e.semantics->log2_size(e.operands).masked_select(e.born);
  const at::Tensor there = e.argument().masked_select(e.born);
  const std::string result = size_text(size.max().item<double>());
  const double argument = there.index({there.abs().argmax()}).item<double>();
  Finding f;
  f.precision = true;  // a wider format can represent it, or delays it; a run decides
  f.needs = FormatHalf::range;
  f.source = name + " of the recorded argument, as a power of two that no format limits";
  f.evidence.push_back({"largest result of " + c.op_text(c.op_index()), result, number_text(limit)});
  f.evidence.push_back({"its argument", number_text(argument)});
  f.evidence.push_back({"bad elements that are beyond " + format,
                        std::to_string(count_true(e.born)) + " of " + std::to_string(count_true(e.born))});
  f.explanation = c.op_text(c.op_index()) + " of " + number_text(argument) + " is " + result + ", but " +
                  format + " ends at " + number_text(limit) + ": " +
                  count_text(count_true(e.born), "element") + " became infinite." +
                  maker_text(c, "The argument", computed_by(c, c.op_index(), e.semantics->argument));
  f.advice =
      "Bound the argument before the exponential (clamp it, or subtract the largest one as softmax and "
      "logsumexp do), or use a form that needs no exponential: log-space, softplus, expm1 of a "
      "difference.";
  f.wanted.push_back(bound(c, e));
  return f;
}

std::optional<Finding> examine_exp_overflow(const Case& c, const Subject&) {
  const auto e = elements_of(c, c.op_index());
  if (!e || count_true(e->born) == 0) return std::nullopt;
  const at::Tensor explained = at::logical_and(e->exponential(), e->beyond());
  if (count_true(at::logical_and(e->born, at::logical_not(explained))) > 0) return std::nullopt;
  return finding(c, *e);
}

}  // namespace

NANQUEST_CAUSE(exp_overflow) = {
    .label = Label::exp_overflow,
    .origins = {Origin::op},
    .ops = {{"exp", "self"},
            {"expm1", "self"},
            {"exp2", "self"},
            {"cosh", "self"},
            {"sinh", "self"},
            {"special_i0", "self"},
            {"i0", "self"},
            {"pow", ""}},
    .examine = examine_exp_overflow,
};

}  // namespace nanquest
