/// Attention of queries to keys, in the two forms that every model here has.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace nanquest::trainer {

/// How attention is computed.
enum class AttentionForm : std::uint8_t {
  written,  ///< scores, mask and softmax as ops of their own, each with its values in a snapshot
  fused,    ///< LibTorch's scaled_dot_product_attention: one op, faster; its scores are in no snapshot
};

struct AttentionCall {
  AttentionForm form = AttentionForm::written;
  double divisor = 0;  ///< of the scores; 0 = √(width of a head)
  double cap = 0;      ///< scores become cap·tanh(score / cap), which is always written out; 0 = none
  double dropout = 0;  ///< share of the softmax's results dropped
  /// bool, [time, time] or [batch, 1, time, time], true where a query may look; undefined = causal.
  at::Tensor visible = {};
  bool everywhere = false;  ///< every query looks at every key; `visible` is not looked at
};

/// softmax(q·kᵀ / divisor)·v of `q` [batch, heads, time, width]; `k` and `v` like it or with fewer heads,
/// each of which serves as many in a row. Returns [batch, heads, time, width].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionCall& call);

}  // namespace nanquest::trainer
