/// Room trainer/model: maps from tokens to logits. A task (trainer/text) computes a loss from them.
///
///     Result<std::unique_ptr<Model>> gpt = make_gpt({.depth = 2, .width = 64}, /*seed=*/42, at::kCPU);
///     at::Tensor logits = (*gpt)->forward(tokens, /*training=*/true);
///
/// Weights are always fp32 masters; lower precision comes from autocast around `forward`. The room never
/// prints, reads no files, and does not know losses and optimizers.
#pragma once

#include <string>
#include <vector>

#include "trainer/task/attention_heads.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// A trainable map from tokens to logits. Not thread-safe.
class Model {
 public:
  virtual ~Model() = default;

  /// `tokens`: int64 [batch, time], each below the size of the vocabulary. Returns logits
  /// [batch, time, vocabulary]; dropout and batch statistics are active only if `training`.
  virtual at::Tensor forward(const at::Tensor& tokens, bool training) = 0;

  /// Leaf tensors with requires_grad, owned by the model.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that `forward` may change in place (running statistics), owned by the model.
  virtual NamedTensors buffers() const { return {}; }
  /// Layers whose attention logits `forward` measures during training, if the model was made for that.
  virtual std::vector<AttentionHeads> attention() const { return {}; }

  /// The shape as text for people: "4 blocks of width 128".
  virtual std::string description() const { return ""; }
  /// Everything that determines the shape of the weights and the meaning of `forward`, as text.
  virtual std::string fingerprint() const { return ""; }
};

}  // namespace nanquest::trainer
