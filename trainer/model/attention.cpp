#include "trainer/model/attention.h"

#include <ATen/ATen.h>

#include <limits>
#include <optional>

#include "trainer/task/causal.h"

namespace nanquest::trainer {
namespace {

/// Each head of [batch, heads, time, width] repeated several times in a row, so that there are `heads`.
at::Tensor repeated(const at::Tensor& t, std::int64_t heads) {
  const std::int64_t times = heads / t.size(1);
  if (times == 1) return t;
  return t.unsqueeze(2)
      .expand({t.size(0), t.size(1), times, t.size(2), t.size(3)})
      .reshape({t.size(0), heads, t.size(2), t.size(3)});
}

at::Tensor written_out(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const AttentionCall& call) {
  const std::int64_t time = q.size(2);
  at::Tensor scores =
      at::matmul(q, k.transpose(-2, -1)) / (call.divisor > 0 ? call.divisor : score_divisor(q.size(3)));
  if (call.cap > 0) scores = at::tanh(scores / call.cap) * call.cap;
  if (!call.everywhere) {
    const at::Tensor hidden =
        call.visible.defined() ? call.visible.logical_not() : future(time, k.size(2), 0, q.options());
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  at::Tensor weights = scores.softmax(-1);
  if (call.dropout > 0) weights = at::dropout(weights, call.dropout, true);
  return at::matmul(weights, v);
}

}  // namespace

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionCall& call) {
  const at::Tensor keys = repeated(k, q.size(1)), values = repeated(v, q.size(1));
  if (call.form == AttentionForm::written || call.cap > 0) return written_out(q, keys, values, call);
  std::optional<at::Tensor> visible;
  if (call.visible.defined() && !call.everywhere) visible = call.visible;
  const std::optional<double> scale = call.divisor > 0 ? std::optional(1 / call.divisor) : std::nullopt;
  return at::scaled_dot_product_attention(q, keys, values, visible, call.dropout,
                                          !visible.has_value() && !call.everywhere, scale);
}

}  // namespace nanquest::trainer
