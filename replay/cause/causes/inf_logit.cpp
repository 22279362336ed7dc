// INF_LOGIT: an infinite input to a softmax, a log-softmax or a logit loss. Proof: the recorded logits hold
// no NaN, and every bad element is at an infinite one (in a loss), or in a row that holds +Inf (in a softmax;
// rows of only -Inf are another cause); with these logits large but finite the op itself is finite. Or: a
// log-softmax of -Inf, where later ops need the log-probabilities of all classes. Or: the logits less the
// logsumexp of the same logits, as torch.distributions.Categorical normalises them.
#include <ATen/ATen.h>

#include <limits>
#include <utility>

#include "replay/case/origin.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Large enough to decide any softmax, small enough for fp16.
constexpr double kLargeLogit = 1e4;

/// Where the infinite logits make bad elements, in the shape of the output.
at::Tensor explained(const Case& c, const Subject& subject, const at::Tensor& logits) {
  at::Tensor infinite = at::isinf(logits);
  const c10::IValue dim = argument(c, c.op_index(), "dim");
  if (subject.op == "binary_cross_entropy_with_logits") return infinite;
  if (!dim.isInt() || logits.dim() == 0) return {};
  return at::any(at::logical_and(infinite, logits > 0), dim.toInt(), true).expand_as(logits);
}

Finding finding(const Case& c, const Subject& subject, const at::Tensor& logits, std::int64_t bad) {
  const std::int64_t plus = count_true(at::logical_and(at::isinf(logits), logits > 0));
  const std::int64_t minus = count_true(at::logical_and(at::isinf(logits), logits < 0));
  Finding f;
  f.source = "the op recomputed with the infinite logits replaced by ±10000";
  f.evidence.push_back(
      {"logits that are +Inf", std::to_string(plus) + " of " + std::to_string(logits.numel())});
  f.evidence.push_back(
      {"logits that are -Inf", std::to_string(minus) + " of " + std::to_string(logits.numel())});
  f.evidence.push_back(
      {"bad elements at or in the row of such a logit", std::to_string(bad) + " of " + std::to_string(bad)});
  f.explanation = c.op_text(c.op_index()) + " was given " + count_text(plus + minus, "infinite logit") +
                  ": the difference of two of them, or their product with a target of 0, is NaN." +
                  maker_text(c, "They", computed_by(c, c.op_index(), subject.argument));
  f.advice =
      "Keep logits finite before a softmax or a logit loss: replace the infinity that was put in by a "
      "large finite number, or leave these entries out of the loss.";
  f.wanted.push_back(clamp_argument(c, c.op_index(), subject.argument, -kLargeLogit, kLargeLogit));
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

/// -Inf among the logits gives a log-probability of -Inf, which is correct; but the loss adds up the
/// log-probabilities of all classes (label smoothing, an entropy, a divergence). Shown by blame: the step is
/// finite without these.
std::optional<Finding> all_classes_count(const Case& c, const Subject& subject, const at::Tensor& logits) {
  const std::vector<Suspect>& set = c.blame().set;
  const at::Tensor out = wide(c.values(c.op_index()).bad_output());
  if (set.size() != 1 || set.front().op.row() != c.op_index() || !set.front().kinds.infinite ||
      count_true(at::isnan(out)) > 0)
    return std::nullopt;
  const at::Tensor masked = at::logical_and(at::isinf(logits), logits < 0);
  const std::int64_t bad = count_true(at::isinf(out));
  if (bad == 0 || bad != count_true(at::logical_and(at::isinf(out), masked))) return std::nullopt;
  Finding f;
  f.source = "the logits as recorded, and the step with their log-probabilities replaced";
  f.evidence.push_back({"log-probabilities that are -Inf, each of a logit of -Inf",
                        std::to_string(bad) + " of " + std::to_string(out.numel())});
  f.explanation =
      c.op_text(c.op_index()) + " was given " + count_text(bad, "logit") +
      " of -Inf and gives a probability of 0 for them, as it should. But what follows adds up the "
      "logarithms of all classes (label smoothing, an entropy or a divergence does), and that of 0 is -Inf." +
      maker_text(c, "They", computed_by(c, c.op_index(), subject.argument));
  f.advice =
      "Mask with a large finite number instead of -Inf (-1e4 fits fp16), or leave the masked classes out of "
      "that "
      "sum: smooth over the classes that are allowed.";
  f.wanted.push_back(clamp_argument(c, c.op_index(), subject.argument, -kLargeLogit, kLargeLogit));
  return f;
}

/// x - logsumexp(x), a log-softmax in two steps: +Inf among x makes both infinite.
std::optional<Finding> less_their_sum(const Case& c, const at::Tensor& logits) {
  const std::int32_t sum = computed_by(c, c.op_index(), "other");
  if (!c.is_one_of(sum, {"logsumexp"})) return std::nullopt;
  const at::Tensor summed = tensor_of(argument(c, sum, "self"));
  const at::Tensor out = c.values(c.op_index()).bad_output();
  if (!summed.defined() || out.sizes() != logits.sizes() ||
      !summed.equal(tensor_of(argument(c, c.op_index(), "self"))))
    return std::nullopt;
  const at::Tensor nan = at::isnan(wide(out)), plus = at::logical_and(at::isinf(logits), logits > 0);
  const std::int64_t bad = count_true(nan);
  if (bad == 0 || count_true(at::logical_and(nan, at::logical_not(plus))) > 0) return std::nullopt;
  Finding f = finding(c, {"sub", "self"}, logits, bad);
  Change of_sum = clamp_argument(c, sum, "self", -kLargeLogit, kLargeLogit);
  f.wanted = std::move(of_sum.otherwise);  // for both
  f.source = "the logits as recorded, and the op that summed their exponentials";
  f.explanation += " " + c.op_with_number(sum) + " summed the exponentials of the same logits.";
  return f;
}

std::optional<Finding> examine_inf_logit(const Case& c, const Subject& subject) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor x = tensor_of(argument(c, c.op_index(), subject.argument));
  const at::Tensor out = values.bad_output();
  if (!x.defined() || !out.defined() || !x.is_floating_point()) return std::nullopt;
  const at::Tensor logits = wide(x);
  if (count_true(at::isnan(logits)) > 0 || count_true(at::isinf(logits)) == 0) return std::nullopt;
  for (const char* other : {"target", "weight", "pos_weight"})
    if (const at::Tensor t = tensor_of(argument(c, c.op_index(), other)); t.defined() && !all_finite(t))
      return std::nullopt;
  if (subject.op == "sub") return less_their_sum(c, logits);
  const bool loss = subject.op == "binary_cross_entropy_with_logits";
  if (subject.op == "_log_softmax" || subject.op == "log_softmax")
    if (auto f = all_classes_count(c, subject, logits)) return f;
  const at::Tensor where = explained(c, subject, logits);
  if (!where.defined()) return std::nullopt;
  // -Inf from a log-softmax where the input was -Inf is intended.
  const at::Tensor bad = loss ? bad_mask(out) : at::isnan(wide(out));
  if (count_true(bad) == 0 || count_true(where) == 0) return std::nullopt;
  const auto there = out.sizes() == where.sizes() ? std::optional(where) : std::nullopt;
  // A loss that is averaged has one element: any infinite logit explains it, if it is finite without.
  if (out.numel() > 1 && (!there || count_true(at::logical_and(bad, at::logical_not(*there))) > 0))
    return std::nullopt;
  std::vector<c10::IValue> changed = values.arguments;
  const auto position = argument_position(*c.op(), subject.argument);
  changed[*position] = at::where(at::isinf(x), at::sign(x) * kLargeLogit, x);
  const auto finite = evaluate(*c.op(), changed, Precision::fp64);
  if (!finite || !all_finite(*finite)) return std::nullopt;
  return finding(c, subject, logits, count_true(bad));
}

}  // namespace

NANQUEST_CAUSE(inf_logit) = {
    .label = Label::inf_logit,
    .phases = {Phase::forward},
    .ops = {{"_softmax", "self"},
            {"_log_softmax", "self"},
            {"softmax", "self"},
            {"log_softmax", "self"},
            {"_safe_softmax", "self"},
            {"sub", "self"},
            {"binary_cross_entropy_with_logits", "self"}},
    .depth = Depth::operand,
    .examine = examine_inf_logit,
};

}  // namespace nanquest
