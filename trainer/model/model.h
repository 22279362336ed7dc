/// Room trainer/model: what is trained. The loop knows only this interface.
///
///     Result<std::unique_ptr<Model>> gpt = make_gpt({.depth = 2, .width = 64}, /*seed=*/42, at::kCPU);
///     at::Tensor logits = (*gpt)->forward(tokens, /*training=*/true);
///     next_token_loss(logits, targets).backward();
///
/// Weights are fp32 masters, always; lower precision comes from autocast around `forward`.
/// Never: prints, reads files, knows of optimizers.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace nanquest::trainer {

/// Tensors by dotted name, in the order in which the model made them. Handles, not copies.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// A trainable map from byte tokens to logits. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// `tokens`: int64 [batch, time] with values 0…255. Returns logits [batch, time, 256]; dropout and
  /// batch statistics are active only if `training`.
  virtual at::Tensor forward(const at::Tensor& tokens, bool training) = 0;

  /// Leaf tensors with requires_grad, owned by the model.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that `forward` may change in place (running statistics), owned by the model.
  virtual NamedTensors buffers() const { return {}; }
};

/// Sum over all positions of -log softmax(logits)[target] in fp32: logits [B, T, 256], targets int64 [B, T];
/// positions with target -100 do not count. Scalar tensor; divide by `count_targets` of the whole window.
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& targets);

/// Number of positions that `next_token_loss` counts.
std::int64_t count_targets(const at::Tensor& targets);

}  // namespace nanquest::trainer
