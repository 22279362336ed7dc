#include "trainer/huggingface/saving.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestCompanion = std::uint64_t{64} << 20;
constexpr std::array<std::string_view, 5> kCompanions = {".json", ".txt", ".model", ".jinja", ".tiktoken"};

Error not_copied(const std::string& path, const std::string& why) {
  return {ErrorCode::io, path + ": can't be copied: " + why, "choose another folder to save into"};
}

bool is_weights(const std::string& name) {
  return name == "model.safetensors.index.json" ||
         (name.starts_with("model") && name.ends_with(".safetensors"));
}

/// Weights of an earlier save under other names would be taken as part of this one.
void remove_others(const std::string& folder, const std::set<std::string>& written) {
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    if (is_weights(name) && !written.contains(name)) fs::remove(entry.path(), ec);
  }
}

std::vector<NamedTensors> in_shards(const NamedTensors& tensors, std::uint64_t shard_bytes) {
  std::vector<NamedTensors> shards(1);
  std::uint64_t bytes = 0;
  for (const auto& named : tensors) {
    if (!shards.back().empty() && bytes + named.second.nbytes() > shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += named.second.nbytes();
    shards.back().push_back(named);
  }
  return shards;
}

std::string shard_name(std::size_t number, std::size_t of) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", number, of);
  return name;
}

}  // namespace

Status write_weights(const std::string& folder, const NamedTensors& tensors, std::uint64_t shard_bytes) {
  const std::vector<NamedTensors> shards = in_shards(tensors, shard_bytes);
  std::set<std::string> written;
  if (shards.size() == 1) {
    written.insert("model.safetensors");
    if (Status s = write_safetensors(folder + "/model.safetensors", tensors, {}); !s) return s;
    remove_others(folder, written);
    return {};
  }
  nlohmann::json map = nlohmann::json::object();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i + 1, shards.size());
    if (Status s = write_safetensors(std::string(folder).append("/").append(name), shards[i], {}); !s)
      return s;
    written.insert(name);
    for (const auto& [tensor, t] : shards[i]) {
      map[tensor] = name;
      bytes += t.nbytes();
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  written.insert("model.safetensors.index.json");
  if (Status s = write_file_atomically(folder + "/model.safetensors.index.json", index.dump(2) + "\n"); !s)
    return s;
  remove_others(folder, written);
  return {};
}

Status copy_companions(const std::string& from, const std::string& folder) {
  std::error_code ec;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(from, ec)) files.push_back(entry.path());
  if (ec) return not_copied(from, ec.message());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const bool companion =
        std::find(kCompanions.begin(), kCompanions.end(), file.extension().string()) != kCompanions.end();
    if (!companion || name == "config.json" || name.starts_with("adapter_") || name.ends_with(".index.json"))
      continue;
    if (!fs::is_regular_file(file, ec) || fs::file_size(file, ec) > kLargestCompanion) continue;
    Result<std::string> bytes = read_whole_file(file.string(), kLargestCompanion);
    if (!bytes) return bytes.error();
    if (Status s = write_file_atomically(std::string(folder).append("/").append(name), *bytes); !s) return s;
  }
  return {};
}

Status write_config(const std::string& from, const std::string& folder, const std::string& format) {
  Result<std::string> text = read_whole_file(from + "/config.json");
  if (!text) return text.error();
  if (format.empty()) return write_file_atomically(folder + "/config.json", *text);
  auto config = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (config.is_discarded() || !config.is_object())
    return Error{ErrorCode::bad_file, from + "/config.json: changed since it was read", "put it back"};
  // Older files call it torch_dtype; if both exist, both are read.
  if (config.contains("torch_dtype")) config["torch_dtype"] = format;
  if (config.contains("dtype") || !config.contains("torch_dtype")) config["dtype"] = format;
  return write_file_atomically(folder + "/config.json", config.dump(2) + "\n");
}

}  // namespace nanquest::trainer
