// LOGSPACE_INF_GRAD: log-space arithmetic on only -Inf: -Inf - -Inf. Proof, one of three: the culprit
// differentiates a log-space sum whose recorded result is -Inf wherever it made NaN; it subtracts from -Inf a
// maximum that is -Inf itself, before an exp whose sum is not a softmax's; or it differentiates a log whose
// zeros are sums of exp(-Inf) only.
#include <ATen/ATen.h>

#include <limits>
#include <set>

#include "replay/case/branch.h"
#include "replay/case/derivative.h"
#include "replay/case/origin.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

Finding finding(const std::string& what, std::int64_t bad) {
  Finding f;
  f.source = "-Inf - -Inf is NaN (IEEE 754-2019, 7.2); -Inf is the logarithm of zero";
  f.evidence.push_back(
      {"bad elements that come of -Inf alone", std::to_string(bad) + " of " + std::to_string(bad)});
  f.explanation =
      what + " Where nothing but log(0) = -Inf is summed, -Inf is taken from -Inf, and that is NaN.";
  f.advice =
      "Give a row of nothing but -Inf a finite floor (a large negative number) before the log-space sum, or "
      "replace an infinite maximum by 0 before it is subtracted, and put -Inf back afterwards.";
  return f;
}

/// The culprit is part of the derivative of logsumexp and similar functions.
std::optional<Finding> derivative(const Case& c, const at::Tensor& bad) {
  const std::int32_t forward = c.forward_of(c.op_index());
  if (!c.is_one_of(forward, {"logsumexp", "logaddexp", "logaddexp2", "_logcumsumexp", "logcumsumexp"}) ||
      !reads_infinity(c.values(c.op_index())) || c.values(forward).outputs.empty())
    return std::nullopt;
  const at::Tensor result = c.values(forward).outputs[0];
  const at::Tensor empty = wide(result) == kMinusInfinity;
  if (!covers(empty, bad, reduced_dimensions(c, forward))) return std::nullopt;
  Finding f =
      finding(c.op_text(c.op_index()) + " (" + c.op()->node + ") differentiates " + c.op_text(forward) +
                  ", whose result was -Inf in " + count_text(count_true(empty), "element") + ".",
              count_true(bad));
  f.evidence.push_back({"results of " + c.op_text(forward) + " that are -Inf",
                        std::to_string(count_true(empty)) + " of " + std::to_string(result.numel())});
  if (c.is_one_of(c.op_index(), {"sub"})) f.wanted.push_back(equal_infinities(c, c.op_index()));
  return f;
}

bool divides_by(const Case& c, std::int32_t division, const std::set<std::int32_t>& makers) {
  const auto position = argument_position(*c.row(division), "other");
  for (const Case::TensorArgument& a : c.tensor_arguments(division))
    if (position && static_cast<std::size_t>(a.position) == *position)
      return makers.count(c.producer(a.tensor, division)) > 0;
  return false;
}

/// exp(x - max) is divided by a sum of itself, or x - max is used a second time: that is a softmax.
bool is_softmax(const Case& c, std::int32_t difference, std::int32_t exponential) {
  const std::vector<std::int32_t> direct = c.readers(difference);
  for (const std::int32_t r : direct)
    if (c.is_one_of(r, {"sub"})) return true;
  const std::set<std::int32_t> sums = c.readers_within(exponential, 2);
  for (const std::int32_t r : c.readers(exponential))
    if (c.is_one_of(r, {"div", "true_divide"}) && divides_by(c, r, sums)) return true;
  return false;
}

/// x - max(x), written by hand.
std::optional<Finding> difference(const Case& c, const at::Tensor& bad) {
  if (!c.is_one_of(c.op_index(), {"sub"})) return std::nullopt;
  const at::Tensor x = operand_of(argument(c, c.op_index(), "self"));
  const at::Tensor m = operand_of(argument(c, c.op_index(), "other"));
  if (!x.defined() || !m.defined() || !x.is_floating_point()) return std::nullopt;
  const auto from = broadcast(wide(x), bad.sizes()), taken = broadcast(wide(m), bad.sizes());
  if (!from || !taken) return std::nullopt;
  const at::Tensor both = at::logical_and(*from == kMinusInfinity, *taken == kMinusInfinity);
  // What is subtracted is a maximum: no element is larger.
  if (!covers(both, bad) || count_true(*from > *taken) > 0) return std::nullopt;
  std::int32_t exponential = kNone;
  for (const std::int32_t r : c.readers_within(c.op_index(), 2))
    if (exponential == kNone && c.is_one_of(r, {"exp", "exp2", "expm1"})) exponential = r;
  if (exponential == kNone || is_softmax(c, c.op_index(), exponential)) return std::nullopt;
  // With a row's own maximum, only a logarithm of the sum shows log-space arithmetic.
  if (c.is_one_of(maker_of(c, c.op_index(), "other"), {"max", "amax"}) &&
      !goes_into_a_logarithm(c, exponential))
    return std::nullopt;
  Finding f = finding(c.op_text(c.op_index()) + " takes a maximum of -Inf from -Inf in " +
                          count_text(count_true(bad), "element") + ", on the way to " +
                          c.op_with_number(exponential) + ".",
                      count_true(bad));
  f.wanted.push_back(equal_infinities(c, c.op_index()));
  return f;
}

/// The exp whose sum `op` reads, and the dimensions of that sum; kNone if it reads no such sum.
struct SumOfExp {
  std::int32_t op = kNone;
  std::vector<std::int64_t> reduced;
};
SumOfExp sum_of_exp(const Case& c, std::int32_t op) {
  SumOfExp found;
  for (int hops = 0; hops < 3; ++hops) {
    const auto arguments = c.tensor_arguments(op);
    op = arguments.empty() ? kNone : c.producer(arguments[0].tensor, op);
    if (c.is_one_of(op, {"exp"})) return found.op = op, found;
    if (!c.is_one_of(op, {"sum"})) return {};
    found.reduced = reduced_dimensions(c, op);
  }
  return {};
}

/// log(sum(exp(x))), written by hand.
std::optional<Finding> log_of_sum(const Case& c, const at::Tensor& bad) {
  const std::int32_t log = c.forward_of(c.op_index());
  if (!c.is_one_of(log, {"log"})) return std::nullopt;
  const at::Tensor zeros = wide(tensor_of(argument(c, log, "self"))) == 0;
  if (!covers(zeros, bad)) return std::nullopt;
  const SumOfExp sum = sum_of_exp(c, log);
  const at::Tensor x = tensor_of(argument(c, sum.op, "self"));
  if (!x.defined()) return std::nullopt;
  const at::Tensor summed = spread(zeros, x.sizes(), sum.reduced);
  if (!summed.defined() || !covers(wide(x) == kMinusInfinity, summed)) return std::nullopt;
  Finding f =
      finding(c.op_text(c.op_index()) + " (" + c.op()->node + ") differentiates the log of a sum of " +
                  c.op_text(sum.op) + " over nothing but -Inf.",
              count_true(bad));
  f.wanted.push_back(guard_argument(c, log, "self", Guard::zero_to_eps));
  return f;
}

std::optional<Finding> examine_logspace_inf_grad(const Case& c, const Subject&) {
  const OpValues& values = c.values(c.op_index());
  if (!c.op() || values.outputs.empty() || !values.bad_output().is_floating_point()) return std::nullopt;
  const at::Tensor out = wide(values.bad_output());
  // Infinities are logarithms of zero, or computed from them, and harmless if there is NaN beside them.
  at::Tensor bad = at::isnan(out);
  if (count_true(bad) == 0 && c.op()->phase == Phase::backward) bad = bad_mask(out);
  if (count_true(bad) == 0) return std::nullopt;
  if (c.op()->phase == Phase::backward) {
    if (auto f = derivative(c, bad)) return f;
    if (auto f = log_of_sum(c, bad)) return f;
  }
  return difference(c, bad);
}

}  // namespace

NANQUEST_CAUSE(logspace_inf_grad) = {
    .label = Label::logspace_inf_grad,
    .origins = {Origin::op},
    .phases = {Phase::forward, Phase::backward},
    .depth = Depth::purpose,
    .examine = examine_logspace_inf_grad,
};

}  // namespace nanquest
