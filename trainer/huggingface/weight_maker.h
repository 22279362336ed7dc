/// Where the layers of a model get their weights: out of the folder, trained or frozen, and their adapters.
/// Inside this room only.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe/nanquest.h"
#include "trainer/huggingface/adapter_files.h"
#include "trainer/huggingface/folder_weights.h"
#include "trainer/huggingface/pretrained.h"

namespace nanquest::trainer {

/// The adapter of one linear layer: y += scale · B·(A·dropout(x)).
struct LoraPair {
  at::Tensor a, b;  ///< fp32 [r, in] and [out, r]
  double scale = 1, dropout = 0;
};

class WeightMaker {
 public:
  WeightMaker(FolderWeights from, std::optional<AdapterFolder> adapter, const LoraOptions& lora,
              std::vector<std::string> targets, const PretrainedOptions& options);

  /// The weight of that name: an fp32 leaf if the folder's weights train, else as it is in the folder.
  at::Tensor weight(const std::string& name, at::IntArrayRef shape);
  /// The adapter of `module`, if it has one.
  std::optional<LoraPair> adapter(const std::string& module, std::int64_t in, std::int64_t out);
  FolderWeights& folder() { return from_; }

  /// Errors of all that was made so far, and of weights that were not asked for.
  Status check() const;
  NamedTensors trained, frozen;
  std::map<std::string, at::ScalarType> formats;  ///< that the folder has them in
  std::map<std::string, std::string> file_names;  ///< of weights that the folder calls otherwise
  std::vector<std::string> adapted;               ///< modules, in the order of their making
  PartHashes frozen_hash;                         ///< of the bytes of the folder's frozen weights

 private:
  bool targeted(const std::string& module) const;
  at::Tensor read_part(const std::string& name, at::IntArrayRef shape);
  at::Tensor train(const std::string& name, const at::Tensor& value);

  FolderWeights from_;
  std::optional<AdapterFolder> adapter_;
  LoraOptions lora_;
  std::vector<std::string> targets_, modules_, wrong_adapter_;
  at::Device device_;
  bool trains_;  ///< the folder's own weights
  bool adapters_train_;
  at::Generator generator_;
};

}  // namespace nanquest::trainer
