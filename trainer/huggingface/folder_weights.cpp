#include "trainer/huggingface/folder_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors_map.h"
#include "trainer/checkpoint/strict_json.h"
#include "trainer/checkpoint/weights.h"

namespace nanquest::trainer {
namespace {

constexpr int kDeepestIndex = 6;

/// The shards of an index by the tensors in them. Throws BadFile.
std::map<std::string, std::string> weight_map(const std::string& text) {
  const nlohmann::json index = parse_strictly(text, "the index", kDeepestIndex);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) throw BadFile{"weight_map is missing"};
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string()) throw BadFile{name.substr(0, 80) + ": its shard is not a text"};
    const std::string file = shard.get<std::string>();
    // A name in a file must not lead out of the folder.
    if (file.empty() || file.find_first_of(std::string("/\\\0", 3)) != std::string::npos ||
        file.find("..") != std::string::npos || !file.ends_with(".safetensors"))
      throw BadFile{"the shard \"" + file.substr(0, 80) + "\" of " + name.substr(0, 80) +
                    " is not the plain name of a .safetensors file"};
    shards[name] = file;
  }
  return shards;
}

}  // namespace

bool is_weight_format(at::ScalarType type) {
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16 || type == at::kDouble;
}

bool finite(const at::Tensor& t) {
  if (t.numel() == 0) return true;
  const at::NoGradGuard no_grad;
  const auto [lowest, highest] = at::aminmax(t.detach());
  return std::isfinite(lowest.item<double>()) && std::isfinite(highest.item<double>());
}

Result<FolderWeights> FolderWeights::open(const std::string& folder) {
  FolderWeights weights;
  std::error_code ec;
  const std::string single = folder + "/model.safetensors", index = folder + "/model.safetensors.index.json";
  if (std::filesystem::exists(single, ec)) {
    weights.path_ = single;
    if (Status s = weights.add_shard(single, nullptr, ""); !s) return s.error();
    return weights;
  }
  if (std::filesystem::exists(index, ec)) {
    weights.path_ = index;
    if (Status s = weights.open_index(folder); !s) return s.error();
    return weights;
  }
  if (std::filesystem::exists(folder + "/pytorch_model.bin", ec) ||
      std::filesystem::exists(folder + "/pytorch_model.bin.index.json", ec))
    return Error{ErrorCode::unsupported, folder + ": its weights are in pytorch_model.bin only",
                 "load it with transformers once and call save_pretrained, which writes safetensors"};
  return Error{ErrorCode::bad_file,
               folder + ": neither model.safetensors nor model.safetensors.index.json is in it",
               "give the folder that save_pretrained or a download made, complete"};
}

Status FolderWeights::open_index(const std::string& folder) {
  Result<std::string> text = read_whole_file(path_);
  if (!text) return text.error();
  std::map<std::string, std::string> shards;
  try {
    shards = weight_map(*text);
  } catch (const BadFile& e) {
    return Error{ErrorCode::bad_file, path_ + ": " + e.what, "give the index as it was published"};
  }
  std::set<std::string> files;
  for (const auto& [name, file] : shards) files.insert(file);
  for (const std::string& file : files)
    if (Status s = add_shard(folder + "/" + file, &shards, file); !s) return s;
  for (const auto& [name, file] : shards)
    if (!tensors_.contains(name))
      return Error{ErrorCode::bad_file, path_ + ": " + name + " is not in " + file + ", where it should be",
                   "download the folder again"};
  return {};
}

Status FolderWeights::add_shard(const std::string& path, const std::map<std::string, std::string>* expected,
                                const std::string& shard) {
  Result<MappedSafetensors> file = map_safetensors(path);
  if (!file) return file.error();
  for (auto& [name, t] : file->tensors) {
    if (expected != nullptr) {
      const auto found = expected->find(name);
      if (found == expected->end() || found->second != shard)
        return Error{ErrorCode::bad_file, path + ": holds " + name + ", which the index does not say",
                     "download the folder again"};
    }
    left_.insert(name);
    tensors_.emplace(name, std::move(t));
  }
  return {};
}

void FolderWeights::leave_out(const std::string& root) {
  const std::string prefix = root + ".";
  for (const auto& [name, t] : tensors_)
    if (name.starts_with(prefix)) return;
  root_ = prefix;
}

void FolderWeights::rename(const std::function<std::string(const std::string&)>& name_of) {
  std::map<std::string, at::Tensor> tensors;
  left_.clear();
  for (auto& [in_file, t] : tensors_) {
    const std::string name = name_of(in_file);
    if (name != in_file) renamed_[name] = in_file;
    if (!tensors.emplace(name, std::move(t)).second) note(in_file + " and another tensor are both " + name);
    left_.insert(name);
  }
  tensors_ = std::move(tensors);
}

std::string FolderWeights::renamed(const std::string& name) const {
  const auto found = renamed_.find(name);
  return found == renamed_.end() ? "" : found->second;
}

bool FolderWeights::has_shape(const std::string& name, at::IntArrayRef shape) {
  const auto found = tensors_.find(in_file(name));
  if (found == tensors_.end()) return false;
  if (found->second.sizes() == shape) return true;
  pass_over(name);
  note(name + " is " + shape_text(found->second.sizes()) + ", not " + shape_text(shape));
  return false;
}

void FolderWeights::split(const std::string& name, const NamedTensors& parts) {
  const auto whole = tensors_.find(in_file(name));
  const std::string known = renamed(name);
  PackedTensor packed{known.empty() ? name : known, whole->second.sizes().vec(), {}};
  pass_over(name);
  tensors_.erase(whole);
  for (const auto& [part, t] : parts) {
    packed.parts.push_back(part);
    left_.insert(in_file(part));
    if (!tensors_.emplace(in_file(part), t).second) note(part + " is in " + packed.name + " too");
  }
  packed_.push_back(std::move(packed));
}

std::string FolderWeights::in_file(const std::string& name) const {
  return !root_.empty() && name.starts_with(root_) ? name.substr(root_.size()) : name;
}

at::Tensor FolderWeights::take(const std::string& name, at::IntArrayRef shape) {
  const at::Tensor nothing = at::empty(shape, at::TensorOptions().dtype(at::kFloat).device(at::kMeta));
  const auto found = tensors_.find(in_file(name));
  if (found == tensors_.end()) {
    note(name + " is missing");
    return nothing;
  }
  left_.erase(found->first);
  const at::Tensor& t = found->second;
  if (t.sizes() != shape) {
    note(name + " is " + shape_text(t.sizes()) + ", not " + shape_text(shape));
    return nothing;
  }
  if (!is_weight_format(t.scalar_type())) {
    note(name + " is " + c10::toString(t.scalar_type()) + ", not F32, F16, BF16 or F64");
    return nothing;
  }
  if (!finite(t)) {
    note(name + " holds NaN or Inf");
    return nothing;
  }
  return t;
}

Status FolderWeights::check() const {
  std::vector<std::string> wrong = wrong_;
  for (const std::string& name : left_) wrong.push_back(name + " is not in the model");
  if (wrong.empty()) return {};
  return does_not_fit(path_, wrong);
}

}  // namespace nanquest::trainer
