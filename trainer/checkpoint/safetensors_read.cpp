#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_hash.h"
#include "trainer/checkpoint/safetensors_types.h"

namespace nanquest::trainer {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kMostTensors = 1'000'000;
constexpr int kDeepest = 4;

/// One tensor as the header describes it.
struct Entry {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct Bad {
  std::string what;
};

/// Parses JSON and refuses what nlohmann would quietly accept: a key given twice, and deep nesting.
json parse_strictly(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  const json::parser_callback_t watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) throw Bad{"the header is nested too deeply"};
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw Bad{"the name \"" + parsed.get<std::string>().substr(0, 80) + "\" is given twice"};
    return true;
  };
  json header = json::parse(text, watch, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object()) throw Bad{"the header is not a JSON object"};
  return header;
}

std::uint64_t unsigned_of(const json& value, const std::string& name) {
  if (!value.is_number_unsigned()) throw Bad{name + ": a shape or an offset is not an unsigned integer"};
  return value.get<std::uint64_t>();
}

std::uint64_t times(std::uint64_t a, std::uint64_t b, const std::string& name) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw Bad{name + ": its size overflows"};
  return product;
}

Entry entry_of(const std::string& name, const json& value) {
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets"))
    throw Bad{name.substr(0, 80) + ": expected dtype, shape and data_offsets"};
  Entry e{.name = name, .type = at::kFloat, .shape = {}, .begin = 0, .end = 0};
  const auto type =
      value["dtype"].is_string() ? safetensors_type(value["dtype"].get<std::string>()) : std::nullopt;
  if (!type) throw Bad{name + ": element type " + value["dtype"].dump().substr(0, 40) + " is not known"};
  e.type = *type;
  const json& shape = value["shape"];
  const json& offsets = value["data_offsets"];
  if (!shape.is_array() || shape.size() > kMostDimensions)
    throw Bad{name + ": shape is not a list of at most 8"};
  if (!offsets.is_array() || offsets.size() != 2) throw Bad{name + ": data_offsets is not a pair"};
  std::uint64_t bytes = c10::elementSize(e.type);
  for (const json& d : shape) {
    const std::uint64_t size = unsigned_of(d, name);
    if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      throw Bad{name + ": its size overflows"};
    bytes = times(bytes, size, name);
    e.shape.push_back(static_cast<std::int64_t>(size));
  }
  e.begin = unsigned_of(offsets[0], name);
  e.end = unsigned_of(offsets[1], name);
  if (e.end < e.begin || e.end - e.begin != bytes)
    throw Bad{name + ": data_offsets don't match type and shape"};
  return e;
}

std::vector<Entry> entries_of(const json& header, std::map<std::string, std::string>& metadata,
                              std::uint64_t data_bytes) {
  std::vector<Entry> entries;
  if (header.size() > kMostTensors) throw Bad{"more than a million tensors"};
  for (const auto& [name, value] : header.items()) {
    if (name != "__metadata__") {
      entries.push_back(entry_of(name, value));
      continue;
    }
    if (!value.is_object()) throw Bad{"__metadata__ is not an object"};
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) throw Bad{"__metadata__ holds something that is not text"};
      metadata[key] = text.get<std::string>();
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at) throw Bad{e.name + ": tensors overlap or leave a hole"};
    at = e.end;
  }
  if (at != data_bytes)
    throw Bad{"the header describes " + std::to_string(at) + " bytes of data, the file holds " +
              std::to_string(data_bytes)};
  return entries;
}

SafetensorsFile read_or_throw(std::ifstream& in, std::uint64_t size) {
  std::uint64_t length = 0;
  if (size < sizeof length || !in.read(reinterpret_cast<char*>(&length), sizeof length))
    throw Bad{"shorter than 8 bytes"};
  if (length > kLargestHeader || length > size - sizeof length)
    throw Bad{"the header is longer than the file, or than 100 MB"};
  std::string text(length, '\0');
  if (!in.read(text.data(), static_cast<std::streamsize>(length))) throw Bad{"truncated"};
  if (text.empty() || text[0] != '{') throw Bad{"not a safetensors file"};
  SafetensorsFile file;
  const std::vector<Entry> entries =
      entries_of(parse_strictly(text), file.metadata, size - sizeof length - length);
  PartHashes sum;
  std::vector<SafetensorsEntry> described;
  for (const Entry& e : entries) {
    at::Tensor t = at::empty(e.shape, at::TensorOptions().dtype(e.type));
    if (t.nbytes() > 0 &&
        !in.read(static_cast<char*>(t.mutable_data_ptr()), static_cast<std::streamsize>(t.nbytes())))
      throw Bad{"truncated"};
    sum.add(hash_contents(t.const_data_ptr(), t.nbytes()));
    described.push_back({e.name, std::string(safetensors_name(e.type).value_or("")), e.shape, t.nbytes()});
    file.tensors.emplace_back(e.name, std::move(t));
  }
  bool head_is_whole = false;
  if (const auto stored = file.metadata.find(std::string(kHeadKey)); stored != file.metadata.end()) {
    const std::string head = head_text(file.metadata, described);
    if (stored->second != hash_text(hash_contents(head.data(), head.size())))
      throw Bad{"the checksum of its header does not match: the file was damaged"};
    head_is_whole = true;
    file.metadata.erase(stored);
  }
  if (const auto stored = file.metadata.find(std::string(kHashKey)); stored != file.metadata.end()) {
    file.whole = head_is_whole;
    if (stored->second != hash_text(sum.finish()))
      throw Bad{"the checksum does not match: the file was damaged"};
    file.metadata.erase(stored);
  }
  file.metadata.erase(std::string(kOldSumKey));
  return file;
}

}  // namespace

at::Tensor SafetensorsFile::find(const std::string& name) const {
  for (const auto& [n, t] : tensors)
    if (n == name) return t;
  return {};
}

Result<SafetensorsFile> read_safetensors(const std::string& path, std::uint64_t largest_bytes) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "give a complete .safetensors file"};
  };
  std::error_code ec;
  const std::uint64_t size = std::filesystem::file_size(path, ec);
  std::ifstream in(path, std::ios::binary);
  if (ec || !in) return bad(ec ? ec.message() : "can't be opened");
  if (size > largest_bytes)
    return bad("larger than the limit of " + std::to_string(largest_bytes) + " bytes");
  try {
    return read_or_throw(in, size);
  } catch (const Bad& e) {
    return bad(e.what);
  } catch (const std::exception& e) {
    return bad(std::string("can't be read: ") + e.what());
  }
}

}  // namespace nanquest::trainer
