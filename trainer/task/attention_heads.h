/// How large the attention logits of each head became in a step, and the weights that made them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace nanquest::trainer {

/// One attention layer. Handles to what the model owns.
struct AttentionHeads {
  std::string name;                       ///< "blocks.3.attention"
  std::vector<at::Tensor> queries, keys;  ///< weights and biases; dimension 0 holds one head after the other
  at::Tensor peaks;                       ///< fp32 [heads]: largest logit seen since `forget`, never below 0

  /// Raises `peaks` by the causal logits q·kᵀ / √width of a batch, `q` and `k` [batch, heads, time, width].
  /// They are computed here again, in fp32 whatever `q` and `k` are, without gradient and some rows at a
  /// time: a fused kernel shows none, and all of them at once would be what such a kernel is there to avoid.
  void see(const at::Tensor& q, const at::Tensor& k) const;
};

/// Puts all peaks back to 0: what an attempt saw that was undone is of no step.
void forget(const std::vector<AttentionHeads>& layers);

}  // namespace nanquest::trainer
