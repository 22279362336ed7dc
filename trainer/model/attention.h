/// Attention of queries to keys, in the two forms of all models here.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::trainer {

/// How attention is computed.
enum class AttentionForm : std::uint8_t {
  written,  ///< scores, mask and softmax as separate ops, each with its values in a snapshot
  fused,    ///< LibTorch's scaled_dot_product_attention: one op, faster; its scores are in no snapshot
};

struct AttentionCall {
  AttentionForm form = AttentionForm::written;
  double divisor = 0;  ///< of the scores; 0 = √(width of a head)
  double cap = 0;      ///< scores become cap·tanh(score / cap), which is always written out; 0 = none
  double dropout = 0;  ///< probability with which the softmax's results are dropped
  /// bool, [time, time] or [batch, 1, time, time], true where a query may look; undefined = causal.
  at::Tensor visible = {};
  bool everywhere = false;  ///< every query looks at every key; `visible` is ignored
};

/// softmax(q·kᵀ / divisor)·v of `q` [batch, heads, time, width]; `k` and `v` have the same shape or fewer
/// heads, each of which serves an equal number of consecutive query heads. Returns [batch, heads, time,
/// width].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionCall& call);

}  // namespace nanquest::trainer
