// ALL_MASKED_ROW: a softmax-like reduction over entries that are all -Inf: max is -Inf, -Inf - -Inf is NaN.
// Proof: the recorded input has such rows, and every bad output lies in one of them. Also if it is written by
// hand: x - max(x), x - logsumexp(x), exp(x) / sum(exp(x)), recognised by the ops that made the operands.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "replay/case/origin.h"
#include "replay/case/semantics.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"

namespace nanquest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Samples with such a row, if the first dimension of the scores is the batch.
std::vector<std::int64_t> rows_of_batch(const Case& c, const at::Tensor& closed) {
  std::vector<std::int64_t> found;
  const std::int64_t batch = batch_size(c.doc());
  if (batch < 2 || closed.dim() < 2 || closed.size(0) != batch) return found;
  for (std::int64_t s = 0; s < batch; ++s)
    if (count_true(closed.select(0, s)) > 0) found.push_back(s);
  return found;
}

Finding finding(const Case& c, std::int64_t closed, std::int64_t rows, std::int64_t length) {
  Finding f;
  f.source = "softmax subtracts the row's maximum: over a row of -Inf that is -Inf - -Inf = NaN";
  f.evidence.push_back(
      {"rows that are -Inf throughout", std::to_string(closed) + " of " + std::to_string(rows)});
  f.evidence.push_back({"entries a row", std::to_string(length)});
  f.explanation =
      std::to_string(closed) + " of " + std::to_string(rows) + " rows that reach " + c.op_text(c.op_index()) +
      " are -Inf in every entry: nothing is left to attend to, and softmax of such a row is NaN. Usually a "
      "sample whose tokens are all padding, or two masks that together hide everything.";
  f.advice =
      "Drop or fix samples with nothing unmasked, let every row see at least itself, or mask with a large "
      "finite number and zero those rows afterwards.";
  f.unmoved.push_back(op_in(c, c.op_index(), Precision::fp64));
  return f;
}

std::optional<Finding> softmax(const Case& c, const Subject& scores) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor x = tensor_of(argument(c, c.op_index(), scores.argument));
  const c10::IValue along = argument(c, c.op_index(), "dim");
  if (!x.defined() || values.outputs.empty() || !along.isInt() || x.dim() == 0) return std::nullopt;
  const std::int64_t dim = along.toInt();
  const at::Tensor input = wide(x);
  // A NaN or +Inf in the input would explain the NaN as well: another cause.
  if (count_true(at::logical_or(at::isnan(input), input == kInfinity)) > 0) return std::nullopt;
  const at::Tensor closed = at::all(input == -kInfinity, dim, true);
  // log_softmax gives -Inf where an entry of an unmasked row is -Inf: that is intended. Only NaN is damage.
  const at::Tensor bad = at::isnan(wide(values.bad_output()));
  const at::Tensor unexplained = at::logical_and(bad, at::logical_not(closed));
  if (count_true(bad) == 0 || count_true(closed) == 0 || count_true(unexplained) > 0) return std::nullopt;
  Finding f = finding(c, count_true(closed), closed.numel(), input.size(dim));
  f.wanted.push_back(open_masked_rows(c, c.op_index(), scores.argument, {dim}));
  f.poison = rows_of_batch(c, closed);
  return f;
}

std::optional<Finding> attention(const Case& c, const Subject& bias) {
  const OpValues& values = c.values(c.op_index());
  const at::Tensor mask = tensor_of(argument(c, c.op_index(), bias.argument));
  if (!mask.defined() || mask.dim() < 2 || values.outputs.empty()) return std::nullopt;
  for (const char* name : {"query", "key", "value"}) {
    const at::Tensor given = tensor_of(argument(c, c.op_index(), name));
    if (!given.defined() || !all_finite(given)) return std::nullopt;
  }
  const at::Tensor closed = mask.scalar_type() == at::kBool ? at::logical_not(at::any(mask, -1, true))
                                                            : at::all(wide(mask) == -kInfinity, -1, true);
  if (count_true(closed) == 0) return std::nullopt;
  const auto rows = broadcast(closed, values.bad_output().sizes());
  const at::Tensor bad = bad_mask(values.bad_output());
  if (!rows || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*rows))) > 0)
    return std::nullopt;
  Finding f = finding(c, count_true(closed), closed.numel(), mask.size(-1));
  f.wanted.push_back(open_masked_rows(c, c.op_index(), bias.argument, {-1}));
  return f;
}

/// The dimensions that a reduction op reduces; all of them if it doesn't say.
std::vector<std::int64_t> reduced_dims(const Case& c, std::int32_t op, std::int64_t rank) {
  const c10::IValue dim = argument(c, op, "dim");
  std::vector<std::int64_t> dims;
  if (dim.isInt()) dims = {dim.toInt()};
  if (dim.isIntList()) dims = dim.toIntVector();
  if (dims.empty())
    for (std::int64_t d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}

/// A softmax written by hand: the scores, the op that reads them first, and the dimensions of a row.
struct ByHand {
  std::int32_t reader = kNone;
  at::Tensor scores;
  std::vector<std::int64_t> dims;
};

/// x - max(x) or x - logsumexp(x).
std::optional<ByHand> shifted(const Case& c) {
  const std::int32_t maker = computed_by(c, c.op_index(), "other");
  if (!c.is_one_of(maker, {"max", "amax", "logsumexp"})) return std::nullopt;
  const at::Tensor x = operand(c, c.op_index(), "self"), reduced = operand(c, maker, "self");
  if (!x.defined() || !reduced.defined() || !at::equal(x, reduced)) return std::nullopt;
  if (goes_into_a_logarithm(c, c.op_index())) return std::nullopt;  // a log of a sum, by hand
  return ByHand{maker, reduced, reduced_dims(c, maker, reduced.dim())};
}

/// exp(x) / sum(exp(x)).
std::optional<ByHand> quotient(const Case& c) {
  const std::int32_t top = computed_by(c, c.op_index(), "self"), sum = computed_by(c, c.op_index(), "other");
  if (!c.is_one_of(top, {"exp"}) || !c.is_one_of(sum, {"sum"}) || computed_by(c, sum, "self") != top)
    return std::nullopt;
  const at::Tensor x = operand(c, top, "self"), summed = operand(c, sum, "self");
  if (!x.defined() || !summed.defined() || x.sizes() != summed.sizes()) return std::nullopt;
  return ByHand{top, x, reduced_dims(c, sum, x.dim())};
}

std::optional<Finding> by_hand(const Case& c, const Subject& subject) {
  // The derivative of a sum of logarithms subtracts it from its operand, too, and is no softmax.
  if (c.is_one_of(c.forward_of(c.op_index()), {"logsumexp", "logaddexp", "logcumsumexp"}))
    return std::nullopt;
  const at::Tensor out = c.values(c.op_index()).bad_output();
  const auto found = subject.op == "sub" ? shifted(c) : quotient(c);
  if (!found || !out.defined() || found->scores.sizes() != out.sizes()) return std::nullopt;
  at::Tensor closed = found->scores == -kInfinity;
  std::int64_t length = 1;
  for (const std::int64_t dim : found->dims) {
    closed = at::all(closed, dim, true);
    length *= found->scores.size(dim);
  }
  const at::Tensor bad = at::isnan(wide(out));
  if (count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(closed.expand_as(bad)))) > 0)
    return std::nullopt;
  Finding f = finding(c, count_true(closed), closed.numel(), length);
  f.wanted.push_back(open_masked_rows(c, found->reader, "self", found->dims, true));
  f.poison = rows_of_batch(c, closed);
  return f;
}

std::optional<Finding> examine_all_masked_row(const Case& c, const Subject& subject) {
  if (subject.op == "sub" || subject.op == "div") return by_hand(c, subject);
  return subject.argument == "self" ? softmax(c, subject) : attention(c, subject);
}

}  // namespace

NANQUEST_CAUSE(all_masked_row) = {
    .label = Label::all_masked_row,
    .origins = {Origin::op},
    .phases = {Phase::forward, Phase::backward},
    .ops = {{"_softmax", "self"},
            {"_log_softmax", "self"},
            {"softmax", "self"},
            {"log_softmax", "self"},
            {"_scaled_dot_product_flash_attention_for_cpu", "attn_mask"},
            {"_scaled_dot_product_efficient_attention", "attn_bias"},
            {"_scaled_dot_product_cudnn_attention", "attn_bias"},
            {"_scaled_dot_product_attention_math", "attn_mask"},
            {"sub", ""},
            {"div", ""}},
    .depth = Depth::purpose,
    .examine = examine_all_masked_row,
};

}  // namespace nanquest
