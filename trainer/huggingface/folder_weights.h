/// All weights of a Hugging Face folder: model.safetensors, or the shards that model.safetensors.index.json
/// names. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/huggingface/packed_experts.h"

namespace nanquest::trainer {

class FolderWeights {
 public:
  /// Maps the files; no weight is read yet. Shards outside `folder` are refused.
  static Result<FolderWeights> open(const std::string& folder);

  /// Hugging Face models without a head have names without their first part: omits it here too.
  void leave_out(const std::string& root);
  /// From now on tensors have the names that `name_of` returns for those in the file.
  void rename(const std::function<std::string(const std::string&)>& name_of);
  /// The name of `name` in the file, if `rename` changed it; else "".
  std::string renamed(const std::string& name) const;
  /// The tensor of that name: a mapped view. If it is invalid (missing, other shape, not a format of weights,
  /// not finite), that is noted and a placeholder of that shape is returned, which must not be used for
  /// computing.
  at::Tensor take(const std::string& name, at::IntArrayRef shape);
  bool has(const std::string& name) const { return tensors_.contains(in_file(name)); }
  /// The tensor without checks; `name` must exist.
  at::Tensor peek(const std::string& name) const { return tensors_.at(in_file(name)); }
  /// Whether there is a tensor of that name and shape; another shape is noted.
  bool has_shape(const std::string& name, at::IntArrayRef shape);
  /// From now on `name`, which must exist, is `parts`: views of it with consecutive bytes.
  void split(const std::string& name, const NamedTensors& parts);
  /// Tensors that were split.
  const std::vector<PackedTensor>& packed() const { return packed_; }
  /// Marks the tensor as known and unused: it is not a weight.
  void pass_over(const std::string& name) { left_.erase(in_file(name)); }
  void note(const std::string& wrong) { wrong_.push_back(wrong); }
  /// Names in the file of tensors that were neither taken nor passed over.
  const std::set<std::string>& left() const { return left_; }

  /// An error with everything that was noted, and the unused tensors.
  Status check() const;
  /// Name of the weights in errors: the file or the index.
  const std::string& path() const { return path_; }

 private:
  std::string in_file(const std::string& name) const;
  Status add_shard(const std::string& path, const std::map<std::string, std::string>* expected,
                   const std::string& shard);
  Status open_index(const std::string& folder);

  std::string path_, root_;
  std::map<std::string, at::Tensor> tensors_;
  std::set<std::string> left_;
  std::vector<std::string> wrong_;
  std::map<std::string, std::string> renamed_;
  std::vector<PackedTensor> packed_;
};

/// "F32", "BF16", …: the formats of weights.
bool is_weight_format(at::ScalarType type);

/// Whether all of `t`, of such a format, is finite; in one pass without a copy.
bool finite(const at::Tensor& t);

}  // namespace nanquest::trainer
