/// The decoder itself. Inside this room only: other rooms load it with `load_pretrained`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/huggingface/layers.h"
#include "trainer/huggingface/pretrained.h"
#include "trainer/huggingface/vision_tower.h"

namespace nanquest::trainer {

class Decoder final : public PretrainedModel {
 public:
  /// Takes its weights from `make`; their errors are in `make.check()`.
  Decoder(std::string folder, DecoderConfig config, const PretrainedOptions& options, const LoraOptions& lora,
          std::vector<std::string> targets, WeightMaker& make);

  at::Tensor forward(const DecoderInput& input, bool training) override;
  NamedTensors parameters() const override { return trained_; }
  NamedTensors frozen() const override { return frozen_; }
  const DecoderConfig& config() const override { return config_; }
  std::string description() const override;
  std::string fingerprint() const override;
  Status save(const std::string& folder, std::optional<at::ScalarType> format) const override;
  Status save_adapter(const std::string& folder) const override;

 private:
  Pass pass_of(const DecoderInput& input, const at::Tensor& positions, bool training) const;
  at::Tensor embed(const at::Tensor& tokens, const at::Tensor& positions, bool training) const;
  /// `x` with the features of `input.pixels` at the places of image tokens.
  at::Tensor with_images(const at::Tensor& x, const DecoderInput& input, bool training) const;
  /// The layers and the norm after them.
  at::Tensor hidden(at::Tensor x, const Pass& pass) const;
  /// The module of the decoder, in which `run` computes.
  at::Tensor inside(const std::function<at::Tensor()>& run) const;
  NamedTensors weights_to_save(std::optional<at::ScalarType> format) const;
  /// Calls f(projection) for all projections.
  template <class F>
  void each_projection(F&& f) const;

  std::string folder_;
  DecoderConfig config_;
  PretrainedOptions options_;
  LoraOptions lora_;
  std::vector<std::string> targets_;
  std::optional<ImageReader> images_;
  Rope rope_, local_rope_;
  Place root_;
  at::Tensor tokens_, positions_;  ///< tables; the second in GPT-2
  std::vector<DecoderLayer> layers_;
  Norm final_norm_;
  at::Tensor head_;
  NamedTensors trained_, frozen_;
  std::map<std::string, at::ScalarType> formats_;
  std::map<std::string, std::string> file_names_;  ///< of weights with another name in their folder
  std::vector<PackedTensor> packed_;               ///< those of which the folder holds several in one
  bool adapted_ = false;
  std::uint64_t frozen_hash_ = 0;
};

template <class F>
void Decoder::each_projection(F&& f) const {
  for (const DecoderLayer& layer : layers_)
    for (const Projection* p :
         {&layer.attention.q, &layer.attention.k, &layer.attention.v, &layer.attention.qkv,
          &layer.attention.out, &layer.mlp.gate, &layer.mlp.up, &layer.mlp.down})
      if (p->weight.defined()) f(*p);
  if (images_) images_->each_projection(f);
}

}  // namespace nanquest::trainer
