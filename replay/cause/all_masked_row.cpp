// ALL_MASKED_ROW: a softmax-like reduction over entries that are all -Inf: max is -Inf, -Inf - -Inf is NaN.
// Proof: the recorded input has such rows, and every bad output lies in one of them.
#include <ATen/ATen.h>

#include <limits>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_softmax(const std::string& name) {
  return name == "_softmax" || name == "_log_softmax" || name == "softmax" || name == "log_softmax";
}

bool is_attention(const std::string& name) {
  return name.rfind("_scaled_dot_product", 0) == 0;
}

/// Position of the attention bias among the op's arguments, by the schemas of ATen's fused attention ops.
std::optional<std::size_t> mask_position(const std::string& name) {
  if (name == "_scaled_dot_product_flash_attention_for_cpu") return 5;
  if (name == "_scaled_dot_product_efficient_attention" || name == "_scaled_dot_product_cudnn_attention" ||
      name == "_scaled_dot_product_attention_math")
    return 3;
  return std::nullopt;
}

class AllMaskedRow : public Cause {
 public:
  std::string_view label() const override { return "ALL_MASKED_ROW"; }

  std::optional<Finding> examine(const Case& c) const override {
    const OpRow* op = c.op();
    if (!op || c.culprit().origin != "op" || op->phase == Phase::optimizer) return std::nullopt;
    const std::string name = plain_name(*op);
    if (is_softmax(name)) return softmax(c);
    if (is_attention(name)) return attention(c, name);
    return std::nullopt;
  }

 private:
  static std::optional<Finding> softmax(const Case& c) {
    const OpValues& values = c.values(c.op_index());
    const at::Tensor x = tensor_at(values, 0);
    if (!x.defined() || values.outputs.empty() || values.arguments.size() < 2 ||
        !values.arguments[1].isInt() || x.dim() == 0)
      return std::nullopt;
    const std::int64_t dim = values.arguments[1].toInt();
    const at::Tensor input = wide(x);
    // A NaN or +Inf that came in would explain the NaN as well: another cause.
    if (count_true(at::logical_or(at::isnan(input), input == kInfinity)) > 0) return std::nullopt;
    const at::Tensor closed = at::all(input == -kInfinity, dim, true);
    // log_softmax gives -Inf where an entry of an open row is -Inf: meant so. Only NaN is damage.
    const at::Tensor bad = at::isnan(wide(values.outputs[0]));
    const at::Tensor unexplained = at::logical_and(bad, at::logical_not(closed));
    if (count_true(bad) == 0 || count_true(closed) == 0 || count_true(unexplained) > 0) return std::nullopt;
    Finding f = finding(c, count_true(closed), closed.numel(), input.size(dim));
    f.wanted.push_back(open_masked_rows(c, c.op_index(), 0, dim));
    f.poison = rows_of_batch(c, closed);
    return f;
  }

  static std::optional<Finding> attention(const Case& c, const std::string& name) {
    const OpValues& values = c.values(c.op_index());
    const auto position = mask_position(name);
    const at::Tensor mask = position ? tensor_at(values, *position) : at::Tensor();
    if (!mask.defined() || mask.dim() < 2 || values.outputs.empty()) return std::nullopt;
    for (std::size_t i = 0; i < 3; ++i)
      if (!tensor_at(values, i).defined() || !all_finite(tensor_at(values, i))) return std::nullopt;
    const at::Tensor closed = mask.scalar_type() == at::kBool ? at::logical_not(at::any(mask, -1, true))
                                                              : at::all(wide(mask) == -kInfinity, -1, true);
    if (count_true(closed) == 0) return std::nullopt;
    const auto rows = broadcast(closed, values.outputs[0].sizes());
    const at::Tensor bad = bad_mask(values.outputs[0]);
    if (!rows || count_true(bad) == 0 || count_true(at::logical_and(bad, at::logical_not(*rows))) > 0)
      return std::nullopt;
    Finding f = finding(c, count_true(closed), closed.numel(), mask.size(-1));
    if (mask.scalar_type() != at::kBool)
      f.wanted.push_back(open_masked_rows(c, c.op_index(), static_cast<int>(*position), -1));
    return f;
  }

  /// Samples with such a row, if the first dimension of the scores is the batch.
  static std::vector<std::int64_t> rows_of_batch(const Case& c, const at::Tensor& closed) {
    std::vector<std::int64_t> found;
    const std::int64_t batch = batch_size(c.doc());
    if (batch < 2 || closed.dim() < 2 || closed.size(0) != batch) return found;
    for (std::int64_t s = 0; s < batch; ++s)
      if (count_true(closed.select(0, s)) > 0) found.push_back(s);
    return found;
  }

  static Finding finding(const Case& c, std::int64_t closed, std::int64_t rows, std::int64_t length) {
    Finding f;
    f.label = "ALL_MASKED_ROW";
    f.source = "softmax subtracts the row's maximum: over a row of -Inf that is -Inf - -Inf = NaN";
    f.evidence.push_back(
        {"rows that are -Inf throughout", std::to_string(closed) + " of " + std::to_string(rows), "0", {}});
    f.evidence.push_back({"entries a row", std::to_string(length), "", {}});
    f.explanation =
        std::to_string(closed) + " of " + std::to_string(rows) + " rows that reach " +
        c.op_text(c.op_index()) +
        " are -Inf in every entry: nothing is left to attend to, and softmax of such a row is NaN. Usually a "
        "sample whose tokens are all padding, or two masks that together hide everything.";
    f.advice =
        "Drop or fix samples with nothing unmasked, let every row see at least itself, or mask with a large "
        "finite "
        "number and zero those rows afterwards.";
    return f;
  }
};

}  // namespace

const Cause& all_masked_row() {
  static const AllMaskedRow cause;
  return cause;
}

}  // namespace nanquest
