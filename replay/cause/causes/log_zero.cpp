// LOG_ZERO: log of exactly zero. Proof: wherever the op made a bad element, its recorded argument is at the
// pole (0; for log1p -1, for logit 0 or 1), and the inputs were finite there. A lost epsilon is another
// cause, and so is a logarithm inside a derivative, unless the forward op was at that pole itself.
#include <ATen/ATen.h>

#include <algorithm>

#include "replay/case/derivative.h"
#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Where zeros of this kind come from, by the op that made them.
std::string origin_of_zeros(const Case& c, std::int32_t maker) {
  const OpRow* op = c.row(maker);
  if (!op) return "";
  const std::string name = plain_name(*op);
  const std::string text = " That came from " + c.op_with_number(maker);
  if (name == "_softmax" || name == "sigmoid" || name == "exp")
    return text +
           ": a probability that underflowed to zero (the difference of two logits was too large for the "
           "format).";
  if (name == "rsub" || name == "sub") return text + ": 1 - p with p saturated at 1.";
  return text + ".";
}

bool another_forward_op_is_to_blame(const Case& c) {
  const std::vector<Suspect>& set = c.blame().set;
  return std::any_of(set.begin(), set.end(), [&](const Suspect& s) {
    return s.op.row() != c.op_index() && c.row(s.op.row())->phase == Phase::forward;
  });
}

Finding finding_of_zero(const Case& c, std::int32_t op, const Elements& e, std::int64_t bad) {
  const OpSemantics& log = *e.semantics;
  const std::string point(log.pole_text), argument(log.argument);
  const std::string elements = std::to_string(bad) + " of " + count_text(e.output.numel(), "element");
  Finding f;
  f.precision = true;  // zeros caused by underflow disappear in a wider format; a run decides
  f.source = "log(0) = -Inf (IEEE 754-2019, 9.2.1)";
  f.evidence.push_back({"elements " + point + " in the input (" + format_name(e.output) + ")",
                        std::to_string(bad) + " of " + std::to_string(e.output.numel())});
  f.explanation = c.op_text(op) + " was given " + point + " in " + elements +
                  ", where the logarithm is infinite." + origin_of_zeros(c, computed_by(c, op, log.argument));
  f.advice =
      "Work in log space (log_softmax, logsigmoid, binary_cross_entropy_with_logits) instead of taking the "
      "log of a probability, or clamp the argument to a smallest number that the format holds.";
  const bool plain = log.op == "log" || log.op == "log2" || log.op == "log10";
  if (plain || log.op == "log1p") {
    f.wanted.push_back(
        guard_argument(c, op, log.argument, plain ? Guard::zero_to_eps : Guard::minus_one_to_eps));
    // An op that divides by the same zeros also needs a number whose reciprocal the format can represent.
    if (plain && another_forward_op_is_to_blame(c))
      f.wanted.push_back(guard_argument(c, op, log.argument, Guard::zero_to_safe_root));
  } else {
    const auto [low, high] = safe_interval(log, e.output);
    f.wanted.push_back(clamp_argument(c, op, log.argument, low, high));
  }
  return f;
}

std::optional<Finding> examine_log_zero(const Case& c, const Subject&) {
  const std::int32_t forward = c.forward_of(c.op_index());
  if (const auto behind = pole_differentiated(c, Pole::logarithm)) {
    Finding f = finding_of_zero(c, forward, *behind, count_true(behind->born));
    f.op = forward;
    f.phase = Phase::forward;
    f.explanation +=
        " What follows makes something finite of it; backward multiplies it by the zero that comes back: " +
        c.op_text(c.op_index()) + " (" + c.op()->node + ") gives NaN.";
    return f;
  }
  // A logarithm inside the derivative of a function that is finite there: that function is singular at 0.
  if (c.op()->phase == Phase::backward && c.row(forward) && !is_written_by_hand(*c.op())) return std::nullopt;
  const auto e = elements_of(c, c.op_index());
  if (!e || e->semantics->pole_kind != Pole::logarithm || count_true(e->born) == 0) return std::nullopt;
  if (count_true(at::logical_and(e->born, at::logical_not(e->at_pole()))) > 0) return std::nullopt;
  return finding_of_zero(c, c.op_index(), *e, count_true(e->born));
}

}  // namespace

NANQUEST_CAUSE(log_zero) = {
    .label = Label::log_zero,
    .origins = {Origin::op},
    .phases = {Phase::forward, Phase::backward},
    .examine = examine_log_zero,
};

}  // namespace nanquest
