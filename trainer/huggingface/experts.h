/// Mixtral's MLP: a few experts out of many for each token. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "trainer/huggingface/layers.h"

namespace nanquest::trainer {

/// The router selects the `experts_per_token` most likely experts of each token, and weights their results
/// with their probabilities, scaled to a sum of one (arXiv 2401.04088).
struct ExpertMlp {
  struct Expert {
    at::Tensor gate, up, down;  ///< [hidden, width], [hidden, width], [width, hidden]
  };

  Place place;
  at::Tensor router;  ///< [experts, width]
  std::vector<Expert> experts;
  const DecoderConfig* config = nullptr;

  ExpertMlp(WeightMaker& make, Place where, const DecoderConfig& c);
  at::Tensor operator()(const at::Tensor& x) const;
};

}  // namespace nanquest::trainer
