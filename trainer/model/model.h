/// Room trainer/model: maps from tokens to logits. A task (trainer/text) makes a loss of what they give.
///
///     Result<std::unique_ptr<Model>> gpt = make_gpt({.depth = 2, .width = 64}, /*seed=*/42, at::kCPU);
///     at::Tensor logits = (*gpt)->forward(tokens, /*training=*/true);
///
/// Weights are fp32 masters, always; lower precision comes from autocast around `forward`.
/// Never: prints, reads files, knows of losses and optimizers.
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
  /// Layers whose attention logits `forward` looks at while it trains, if it was made to.
  virtual std::vector<AttentionHeads> attention() const { return {}; }

  /// The shape in a person's words: "4 blocks of width 128".
  virtual std::string description() const { return ""; }
  /// All that the shape of the weights and the meaning of `forward` depend on, as text.
  virtual std::string fingerprint() const { return ""; }
};

}  // namespace nanquest::trainer
