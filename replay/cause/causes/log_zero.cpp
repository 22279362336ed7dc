// LOG_ZERO: log of exactly zero. Proof: the recorded input is exactly zero (for log1p: -1) wherever the
// output is bad, and nothing else that came in was bad.
#include <ATen/ATen.h>

#include <set>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// The op that computed the values that `op` reads: looks through ops that only move or select elements.
std::int32_t computed_by(const Case& c, std::int32_t op) {
  for (int hops = 0; hops < 16 && op != kNone; ++hops) {
    const auto arguments = c.tensor_arguments(op);
    const std::int32_t maker = arguments.empty() ? kNone : c.producer(arguments[0].tensor, op);
    static const std::set<std::string> moves = {"gather",  "index",     "index_select", "select",   "slice",
                                                "view",    "clone",     "_to_copy",     "copy",     "cat",
                                                "squeeze", "unsqueeze", "permute",      "transpose"};
    if (const OpRow* row = c.row(maker); !row || moves.count(plain_name(*row)) == 0) return maker;
    op = maker;
  }
  return kNone;
}

/// Where zeros of this kind come from, by the op that made them.
std::string origin_of_zeros(const Case& c, std::int32_t maker) {
  const OpRow* op = c.row(maker);
  if (!op) return "";
  const std::string name = plain_name(*op);
  const std::string text = " That came from " + c.op_text(maker) + " (op " + std::to_string(maker) + ")";
  if (name == "_softmax" || name == "sigmoid" || name == "exp")
    return text +
           ": a probability that underflowed to zero (the difference of two logits was too large for the "
           "format).";
  if (name == "rsub" || name == "sub") return text + ": 1 - p with p saturated at 1.";
  return text + ".";
}

Finding finding(const Case& c, const Subject& log, double point, std::int64_t zeros, const at::Tensor& x) {
  const std::int32_t maker = computed_by(c, c.op_index());
  Finding f;
  f.precision = true;  // zeros that underflowed come back in a wider format; the run decides
  f.source = "log(0) = -Inf (IEEE 754-2019, 9.2.1)";
  f.evidence.push_back({"elements exactly " + number_text(point) + " in the input (" + format_name(x) + ")",
                        std::to_string(zeros) + " of " + std::to_string(x.numel())});
  f.explanation = c.op_text(c.op_index()) + " was given exactly " + number_text(point) + " in " +
                  std::to_string(zeros) + " of " + count_text(x.numel(), "element") +
                  ", where the logarithm is -Inf." + origin_of_zeros(c, maker);
  f.advice =
      "Work in log space (log_softmax, logsigmoid, binary_cross_entropy_with_logits) instead of taking the "
      "log of a probability, or clamp the argument to a smallest number that the format holds.";
  f.wanted.push_back(guard_argument(c, c.op_index(), log.argument,
                                    point == 0 ? Guard::zero_to_eps : Guard::minus_one_to_eps));
  return f;
}

std::optional<Finding> examine(const Case& c, const Subject& log) {
  const double point = log.op == "log1p" ? -1 : 0;
  const OpValues& values = c.values(c.op_index());
  if (values.outputs.empty()) return std::nullopt;
  const at::Tensor x = tensor_of(argument(c, c.op_index(), log.argument));
  if (!x.defined() || !all_finite(x) || x.sizes() != values.bad_output().sizes()) return std::nullopt;
  const at::Tensor zeros = wide(x) == point;
  const at::Tensor bad = bad_mask(values.bad_output());
  if (count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(zeros))) > 0)
    return std::nullopt;
  return finding(c, log, point, count_true(zeros), x);
}

}  // namespace

NANQUEST_CAUSE(log_zero) = {
    .label = Label::log_zero,
    .origins = {Origin::op},
    .phases = {Phase::forward, Phase::backward},
    .ops = {{"log", "self"}, {"log2", "self"}, {"log10", "self"}, {"log1p", "self"}},
    .examine = examine,
};

}  // namespace nanquest
