#include "trainer/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trainer/checkpoint/safetensors_types.h"
#include "trainer/checkpoint/strict_json.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;
using Entry = SafetensorsHeader::Tensor;

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kMostTensors = 1'000'000;
constexpr int kDeepestHeader = 4;

std::uint64_t unsigned_of(const json& value, const std::string& name) {
  if (!value.is_number_unsigned()) throw BadFile{name + ": a shape or an offset is not an unsigned integer"};
  return value.get<std::uint64_t>();
}

std::uint64_t times(std::uint64_t a, std::uint64_t b, const std::string& name) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw BadFile{name + ": its size overflows"};
  return product;
}

Entry entry_of(const std::string& name, const json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    throw BadFile{name.substr(0, 80) + ": expected dtype, shape and data_offsets"};
  Entry e{.name = name, .type = at::kFloat, .shape = {}, .begin = 0, .end = 0};
  const auto type =
      value["dtype"].is_string() ? safetensors_type(value["dtype"].get<std::string>()) : std::nullopt;
  if (!type) throw BadFile{name + ": element type " + value["dtype"].dump().substr(0, 40) + " is not known"};
  e.type = *type;
  const json& shape = value["shape"];
  const json& offsets = value["data_offsets"];
  if (!shape.is_array() || shape.size() > kMostDimensions)
    throw BadFile{name + ": shape is not a list of at most 8"};
  if (!offsets.is_array() || offsets.size() != 2) throw BadFile{name + ": data_offsets is not a pair"};
  std::uint64_t bytes = c10::elementSize(e.type);
  for (const json& d : shape) {
    const std::uint64_t size = unsigned_of(d, name);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw BadFile{name + ": its size overflows"};
    bytes = times(bytes, size, name);
    e.shape.push_back(static_cast<std::int64_t>(size));
  }
  e.begin = unsigned_of(offsets[0], name);
  e.end = unsigned_of(offsets[1], name);
  if (e.end < e.begin || e.end - e.begin != bytes)
    throw BadFile{name + ": data_offsets don't match type and shape"};
  return e;
}

std::vector<Entry> entries_of(const json& header, std::map<std::string, std::string>& metadata,
                              std::uint64_t data_bytes) {
  std::vector<Entry> entries;
  if (header.size() > kMostTensors) throw BadFile{"more than a million tensors"};
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(name, value));
      continue;
    }
    if (!value.is_object()) throw BadFile{"__metadata__ is not an object"};
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw BadFile{"__metadata__ holds something that is not text"};
      metadata[key] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at) throw BadFile{e.name + ": tensors overlap or leave a hole"};
    at = e.end;
  }
  if (at != data_bytes)
    throw BadFile{"the header describes " + std::to_string(at) + " bytes of data, the file holds " +
                  std::to_string(data_bytes)};
  return entries;
}

}  // namespace

SafetensorsHeader read_safetensors_header(std::istream& in, std::uint64_t size) {
  std::uint64_t length = 0;
  if (size < sizeof length || !in.read(reinterpret_cast<char*>(&length), sizeof length))
    throw BadFile{"shorter than 8 bytes"};
  if (length > kLargestHeader || length > size - sizeof length)
    throw BadFile{"the header is longer than the file, or than 100 MB"};
  std::string text(length, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(length))) throw BadFile{"truncated"};
  if (text.empty() || text[0] != '{') throw BadFile{"not a safetensors file"};
  SafetensorsHeader header;
  header.data_at = sizeof length + length;
  header.tensors =
      entries_of(parse_strictly(text, "the header", kDeepestHeader), header.metadata, size - header.data_at);
  return header;
}

}  // namespace nanquest::trainer
