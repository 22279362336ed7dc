/// Computes features of images: CLIP's vision tower, and LLaVA's projector after it. Names are Hugging
/// Face's. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "trainer/huggingface/image_config.h"
#include "trainer/huggingface/layers.h"
#include "trainer/huggingface/weight_maker.h"

namespace nanquest::trainer {

/// Options of a pass through the tower.
struct ImagePass {
  AttentionForm form = AttentionForm::fused;
  bool training = false, checkpointing = false;
};

struct VisionLayer {
  Place place, attention, mlp;
  Norm before_attention, before_mlp;
  Projection q, k, v, out, fc1, fc2;
  std::int64_t heads = 1;
  double dropout = 0;
  MlpActivation activation{};
  std::vector<at::Tensor> trained;  ///< all trained weights of the layer

  VisionLayer(WeightMaker& make, Place where, const VisionConfig& c);
  at::Tensor operator()(at::Tensor x, const ImagePass& pass) const;

 private:
  at::Tensor attend_to(const at::Tensor& x, const ImagePass& pass) const;
};

class VisionTower {
 public:
  VisionTower(WeightMaker& make, Place where, const VisionConfig& c);

  /// The hidden states `wanted` of `pixels` [images, channels, height, width], side by side: [images, 1 +
  /// patches, width · wanted]. Layers after the last of them are not computed.
  at::Tensor features(const at::Tensor& pixels, const std::vector<std::int64_t>& wanted,
                      const ImagePass& pass) const;
  template <class F>
  void each_projection(F&& f) const {
    for (const VisionLayer& layer : layers_)
      for (const Projection* p : {&layer.q, &layer.k, &layer.v, &layer.out, &layer.fc1, &layer.fc2}) f(*p);
  }

 private:
  at::Tensor embed(const at::Tensor& pixels) const;

  VisionConfig config_;
  Place place_;
  at::Tensor class_, patches_, positions_;  ///< weights of the embeddings
  Norm before_, after_;                     ///< the second is not used by LLaVA and never computes here
  std::vector<VisionLayer> layers_;
};

/// Tower and projector.
class ImageReader {
 public:
  /// `parent`: the module that contains them.
  ImageReader(WeightMaker& make, const std::string& parent, const ImageConfig& c, std::int64_t text_width);

  /// The values for an image's tokens: [images, config.tokens(), text width].
  at::Tensor operator()(const at::Tensor& pixels, const ImagePass& pass) const;
  template <class F>
  void each_projection(F&& f) const {
    tower_.each_projection(f);
    for (const Projection* p : {&first_, &second_}) f(*p);
  }

 private:
  ImageConfig config_;
  VisionTower tower_;
  Place projector_;
  Projection first_, second_;
};

}  // namespace nanquest::trainer
