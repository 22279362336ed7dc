#include "trainer/data/manifest.h"

#include <span>

#include "probe/nanquest.h"
#include "trainer/data/crc32.h"

namespace nanquest::trainer {

bool is_pictures(const nlohmann::json& manifest) {
  const auto format = manifest.is_object() ? manifest.find("format") : manifest.end();
  return format != manifest.end() && *format == kPictures;
}

void check_shard_name(const std::string& name) {
  // A manifest from elsewhere must not refer to files outside its folder.
  if (name.empty() || name.find('/') != std::string::npos || name.starts_with('.'))
    throw BadManifest{"a shard's name is \"" + name.substr(0, 80) + "\""};
}

std::map<std::string, TokenizerFile> tokenizer_files(const nlohmann::json& tokenizer) {
  std::map<std::string, TokenizerFile> files;
  const auto listed = manifest_field<nlohmann::json>(tokenizer, "files");
  for (const auto& [name, file] : listed.items())
    files[name] = {manifest_field<std::uint64_t>(file, "bytes"),
                   manifest_field<std::uint32_t>(file, "crc32")};
  return files;
}

Status made_by_tokenizer_of(const std::string& folder, const std::string& data,
                            const std::map<std::string, TokenizerFile>& files) {
  for (const auto& [name, made_by] : files) {
    if (name.find('/') != std::string::npos) continue;
    const std::string path = std::string(folder).append("/").append(name);
    const Result<std::string> content = read_whole_file(path);
    if (!content) continue;
    if (content->size() == made_by.bytes &&
        crc32(std::as_bytes(std::span(content->data(), content->size()))) == made_by.crc32)
      continue;
    return Error{ErrorCode::usage, std::string(data).append(": made by another tokenizer than ").append(path),
                 std::string("nanquest prepare --model ")
                     .append(folder)
                     .append(" makes tokens that this model knows")};
  }
  return {};
}

}  // namespace nanquest::trainer
