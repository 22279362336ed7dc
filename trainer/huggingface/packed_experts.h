/// Files in which one tensor holds all experts of a layer (transformers 5 with `save_original_format=False`).
/// Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/huggingface/decoder_config.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

class FolderWeights;

/// One tensor of a file that is several of the model's: their bytes, one after the other.
struct PackedTensor {
  std::string name;  ///< in the file
  std::vector<std::int64_t> shape;
  std::vector<std::string> parts;  ///< names of the model's tensors, in the order of their bytes
};

/// Splits `weights` into the experts of every layer, as views, if the file has them in `experts.gate_up_proj`
/// [experts, 2 · hidden, width] and `experts.down_proj` [experts, width, hidden]. Another shape is noted as
/// wrong.
void split_experts(FolderWeights& weights, const DecoderConfig& config);

/// `weights` with each of `packed` in place of its first part, as one tensor; a view if its parts are still
/// placed as in the file.
NamedTensors packed_again(const NamedTensors& weights, const std::vector<PackedTensor>& packed);

}  // namespace nanquest::trainer
