/// The layers of decoders, with Hugging Face's names. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/huggingface/decoder_config.h"
#include "trainer/huggingface/rope.h"
#include "trainer/huggingface/weight_maker.h"
#include "trainer/model/attention.h"

namespace nanquest::trainer {

/// A module's place: `parent`.`name`, and the name of its class.
struct Place {
  std::string parent, name, type;
  std::string path() const { return parent.empty() ? name : parent + "." + name; }
};

/// y = x·Wᵀ + b, plus an adapter's contribution. W is [out, in], or [in, out] if it is `transposed` (GPT-2's
/// Conv1D).
struct Projection {
  Place place;
  at::Tensor weight, bias;  ///< bias may be undefined
  bool transposed = false;
  std::optional<LoraPair> lora;

  Projection() = default;
  Projection(WeightMaker& make, Place where, std::int64_t in, std::int64_t out, bool with_bias,
             bool transposed_weight);
  at::Tensor operator()(const at::Tensor& x, bool training) const;
  /// W plus the adapter's contribution: fp32, of W's shape.
  at::Tensor merged() const;
};

/// A frozen weight in the format of its other factor; under autocast, autocast does that. Undefined stays
/// undefined.
at::Tensor weight_for(const at::Tensor& x, const at::Tensor& weight);

/// x·Wᵀ + b without a module; `bias` may be undefined.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Over the last dimension, computed in fp32: root mean square (times weight, or 1 + weight: Gemma), or mean
/// and variance with a bias (GPT-2).
struct Norm {
  Place place;
  at::Tensor weight, bias;
  double eps = 1e-6;
  bool plus_one = false;

  Norm() = default;
  Norm(WeightMaker& make, Place where, std::int64_t width, const DecoderConfig& config);
  /// Mean and variance, with a bias.
  Norm(WeightMaker& make, Place where, std::int64_t width, double epsilon);
  at::Tensor operator()(const at::Tensor& x) const;
};

/// Shared by all layers of a forward pass.
struct Pass {
  Rotation rotation, local_rotation;           ///< the second for layers with a window
  std::map<std::int64_t, at::Tensor> visible;  ///< by window: mask of AttentionCall, undefined = causal
  AttentionForm form = AttentionForm::fused;
  bool training = false;
};

struct SelfAttention {
  Place place;
  Projection q, k, v, qkv, out;  ///< `qkv` in GPT-2, instead of the first three
  Norm q_norm, k_norm;
  const DecoderConfig* config = nullptr;
  std::int64_t window = 0;
  double divisor = 0;

  SelfAttention(WeightMaker& make, Place where, const DecoderConfig& c, std::int64_t layer);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;
};

struct GatedMlp {
  Place place;
  Projection gate, up, down;  ///< no gate in GPT-2
  const DecoderConfig* config = nullptr;

  GatedMlp() = default;
  GatedMlp(WeightMaker& make, Place where, const DecoderConfig& c);
  at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;
};

struct ExpertMlp;  ///< experts.h

struct DecoderLayer {
  Place place;
  Norm before_attention, after_attention, before_mlp,
      after_mlp;  ///< the "after" ones only with `four_norms`
  SelfAttention attention;
  GatedMlp mlp;
  std::shared_ptr<const ExpertMlp> experts;  ///< in Mixtral, instead of it
  bool four_norms = false;
  std::vector<at::Tensor> trained;  ///< all trained weights of the layer

  DecoderLayer(WeightMaker& make, Place where, const DecoderConfig& c, std::int64_t layer);
  at::Tensor operator()(at::Tensor x, const Pass& pass) const;
};

/// The first part of a family's class names: "Llama" for "LlamaForCausalLM".
std::string class_prefix(const DecoderConfig& config);

}  // namespace nanquest::trainer
