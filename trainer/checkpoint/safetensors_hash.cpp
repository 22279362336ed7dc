#include "trainer/checkpoint/safetensors_hash.h"

#include <cstdio>
#include <set>
#include <utility>

#include "trainer/checkpoint/safetensors_types.h"

namespace nanquest::trainer {

std::string head_text(const std::map<std::string, std::string>& metadata,
                      const std::vector<SafetensorsEntry>& tensors) {
  std::string text;
  for (const auto& [key, value] : metadata)
    if (key != kHeadKey) text.append(key).append(1, '\0').append(value).append(1, '\0');
  std::set<std::string> described;
  for (const SafetensorsEntry& t : tensors) {
    std::string one = t.name + '\0' + t.type;
    for (const std::int64_t size : t.shape) one.append(1, ' ').append(std::to_string(size));
    described.insert(std::move(one));
  }
  for (const std::string& one : described) text.append(one).append(1, '\0');
  return text;
}

std::string hash_text(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace nanquest::trainer
