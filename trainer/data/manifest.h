/// Common parts of the manifests of prepared data. Inside this room only.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "probe/base/result.h"
#include "trainer/data/tokenizer_file.h"

namespace nanquest::trainer {

inline constexpr const char* kManifest = "manifest.json";
inline constexpr const char* kPictures = "nanquest.prepared.pictures";  ///< format of pictures with labels

/// Names an entry that a manifest lacks.
struct BadManifest {
  std::string what;
};

template <class T>
T manifest_field(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw BadManifest{std::string("\"") + key + "\" is missing"};
  if constexpr (std::is_same_v<T, std::string>) {
    if (!found->is_string()) throw BadManifest{std::string("\"") + key + "\" is not text"};
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) throw BadManifest{std::string("\"") + key + "\" is neither true nor false"};
  } else if constexpr (std::is_same_v<T, nlohmann::json>) {
    if (!found->is_object() && !found->is_array())
      throw BadManifest{std::string("\"") + key + "\" holds nothing"};
  } else {
    if (!found->is_number_unsigned() ||
        found->template get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      throw BadManifest{std::string("\"") + key + "\" is no whole number, or too large a one"};
  }
  return found->template get<T>();
}

/// Whether it is one of pictures with labels.
bool is_pictures(const nlohmann::json& manifest);

/// Throws BadManifest if `name`, of a file beside the manifest, refers outside its folder.
void check_shard_name(const std::string& name);

/// The tokenizer's files by name, of the manifest's "tokenizer".
std::map<std::string, TokenizerFile> tokenizer_files(const nlohmann::json& tokenizer);

/// Whether the tokenizer of the model in `folder` is the one that made `data`, as far as both have files of
/// it; `usage` names the file that differs.
Status made_by_tokenizer_of(const std::string& folder, const std::string& data,
                            const std::map<std::string, TokenizerFile>& files);

}  // namespace nanquest::trainer
