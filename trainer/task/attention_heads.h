/// The largest attention logits of each head in a step, and the weights that made them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace nanquest::trainer {

/// One attention layer. Handles to what the model owns.
struct AttentionHeads {
  std::string name;                       ///< "blocks.3.attention"
  std::vector<at::Tensor> queries, keys;  ///< weights and biases; dimension 0 holds one head after the other
  at::Tensor peaks;                       ///< fp32 [heads]: largest logit since `forget`, never below 0

  /// Raises `peaks` by the causal logits q·kᵀ / √width of a batch, `q` and `k` [batch, heads, time, width].
  /// They are computed again here, in fp32 for every format of `q` and `k`, without gradient, some rows at a
  /// time: a fused kernel does not return them, and all rows at once would use the memory that such a kernel
  /// avoids.
  void see(const at::Tensor& q, const at::Tensor& k) const;
};

/// Resets all peaks to 0: values of an undone attempt do not count.
void forget(const std::vector<AttentionHeads>& layers);

}  // namespace nanquest::trainer
