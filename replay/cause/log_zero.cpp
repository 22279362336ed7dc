// LOG_ZERO: log of exactly zero. Proof: the recorded input is exactly zero (for log1p: -1) wherever the
// output is bad, and nothing else that came in was bad.
#include <ATen/ATen.h>

#include <set>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

std::optional<double> singular_point(const std::string& name) {
  if (name == "log" || name == "log2" || name == "log10") return 0.0;
  if (name == "log1p") return -1.0;
  return std::nullopt;
}

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

class LogZero : public Cause {
 public:
  std::string_view label() const override { return "LOG_ZERO"; }

  std::optional<Finding> examine(const Case& c) const override {
    const OpRow* op = c.op();
    if (!op || c.culprit().origin != "op" || op->phase == Phase::optimizer) return std::nullopt;
    const auto point = singular_point(plain_name(*op));
    const OpValues& values = c.values(c.op_index());
    if (!point || values.outputs.empty()) return std::nullopt;
    const at::Tensor x = tensor_at(values, 0);
    if (!x.defined() || !all_finite(x) || x.sizes() != values.outputs[0].sizes()) return std::nullopt;
    const at::Tensor zeros = wide(x) == *point;
    const at::Tensor bad = bad_mask(values.outputs[0]);
    if (count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(zeros))) > 0)
      return std::nullopt;
    return finding(c, *point, count_true(zeros), x);
  }

 private:
  static Finding finding(const Case& c, double point, std::int64_t zeros, const at::Tensor& x) {
    const std::int32_t maker = computed_by(c, c.op_index());
    Finding f;
    f.label = "LOG_ZERO";
    f.precision = true;  // zeros that underflowed come back in a wider format; the run decides
    f.source = "log(0) = -Inf (IEEE 754-2019, 9.2.1)";
    f.evidence.push_back({"elements exactly " + number_text(point) + " in the input (" + format_name(x) + ")",
                          std::to_string(zeros) + " of " + std::to_string(x.numel()),
                          "0",
                          {}});
    f.explanation = c.op_text(c.op_index()) + " was given exactly " + number_text(point) + " in " +
                    std::to_string(zeros) + " of " + count_text(x.numel(), "element") +
                    ", where the logarithm is -Inf." + origin_of_zeros(c, maker);
    f.advice =
        "Work in log space (log_softmax, logsigmoid, binary_cross_entropy_with_logits) instead of taking the "
        "log of a "
        "probability, or clamp the argument to a smallest number that the format holds.";
    f.wanted.push_back(
        guard_argument(c, c.op_index(), 0, point == 0 ? Guard::zero_to_eps : Guard::minus_one_to_eps));
    return f;
  }
};

}  // namespace

const Cause& log_zero() {
  static const LogZero cause;
  return cause;
}

}  // namespace nanquest
