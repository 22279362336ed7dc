#include "probe/snapshot/safetensors.h"

#include <nlohmann/json.hpp>

namespace nanquest {

std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors,
                             const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const SafetensorsEntry& t : tensors) {
    header[t.name] = {{"dtype", t.type}, {"shape", t.shape}, {"data_offsets", {at, at + t.bytes}}};
    at += t.bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string head;
  for (int shift = 0; shift < 64; shift += 8) head += static_cast<char>(text.size() >> shift & 0xff);
  return head + text;
}

}  // namespace nanquest
