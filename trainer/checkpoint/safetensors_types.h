/// Names of element types in the safetensors format, and the hash in files of ours.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

inline constexpr std::pair<std::string_view, at::ScalarType> kSafetensorsTypes[] = {
    {"F32", at::kFloat},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"I32", at::kInt},
    {"I16", at::kShort},
    {"I8", at::kChar},
    {"U8", at::kByte},
    {"BOOL", at::kBool},
    {"U16", at::kUInt16},
    {"U32", at::kUInt32},
    {"U64", at::kUInt64},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"C64", at::kComplexFloat},
};

inline std::optional<at::ScalarType> safetensors_type(std::string_view name) {
  for (const auto& [text, type] : kSafetensorsTypes)
    if (text == name) return type;
  return std::nullopt;
}

inline std::optional<std::string_view> safetensors_name(at::ScalarType wanted) {
  for (const auto& [text, type] : kSafetensorsTypes)
    if (type == wanted) return text;
  return std::nullopt;
}

/// Metadata entry of files of ours: the nq64p of each tensor's bytes, joined like parts of nq64p (hash.h), as
/// 16 hex digits. Earlier files have a sum of another kind under kOldSumKey instead, which nobody reads any
/// more.
inline constexpr std::string_view kHashKey = "nanquest.nq64p";
inline constexpr std::string_view kHeadKey = "nanquest.head";  ///< nq64 of `head_text`, as 16 hex digits
inline constexpr std::string_view kOldSumKey = "nanquest.checksum";

/// What the header says, in a form that does not depend on how its JSON is written: metadata by key, without
/// the entry of this hash itself, then name, type and shape of the tensors by name (their order, as that of
/// their bytes, is not unique where some are empty).
inline std::string head_text(const std::map<std::string, std::string>& metadata,
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

inline std::string hash_text(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

}  // namespace nanquest::trainer
