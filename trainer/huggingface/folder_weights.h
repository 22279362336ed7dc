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
  /// Maps the files; none of the weights is read yet. Shards outside of `folder` are refused.
  static Result<FolderWeights> open(const std::string& folder);

  /// Hugging Face models without a head have names without their first part: then it is left out here as
  /// well.
  void leave_out(const std::string& root);
  /// From now on all tensors are known by the name that `name_of` gives for the one in the file.
  void rename(const std::function<std::string(const std::string&)>& name_of);
  /// What `name` is called in the file, if `rename` changed it; else "".
  std::string renamed(const std::string& name) const;
  /// The tensor of that name: a mapped view. What is wrong with it (missing, other shape, no number format
  /// that weights have, not finite) is noted, and something of that shape given that nobody may compute with.
  at::Tensor take(const std::string& name, at::IntArrayRef shape);
  bool has(const std::string& name) const { return tensors_.contains(in_file(name)); }
  /// The tensor as it is, without a look at it; `name` must be there.
  at::Tensor peek(const std::string& name) const { return tensors_.at(in_file(name)); }
  /// Whether there is a tensor of that name and shape; another shape is noted.
  bool has_shape(const std::string& name, at::IntArrayRef shape);
  /// From now on `name`, which must be there, is `parts`: views of it, whose bytes follow one another.
  void split(const std::string& name, const NamedTensors& parts);
  /// What was split.
  const std::vector<PackedTensor>& packed() const { return packed_; }
  /// A tensor of that name is no weight: known, and passed over.
  void pass_over(const std::string& name) { left_.erase(in_file(name)); }
  void note(const std::string& wrong) { wrong_.push_back(wrong); }
  /// Names, as in the file, of what was neither taken nor passed over.
  const std::set<std::string>& left() const { return left_; }

  /// An error that names all that was noted, and what is left over.
  Status check() const;
  /// What errors call the weights: the file or the index.
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

/// "F32", "BF16", …: those of weights.
bool is_weight_format(at::ScalarType type);

/// Whether all of `t`, of such a format, is finite; in one pass without a copy.
bool finite(const at::Tensor& t);

}  // namespace nanquest::trainer
