/// Names in safetensors files: of element types, and of our hashes in the metadata.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>
#include <utility>

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
/// 16 hex digits. Earlier files have a sum of another kind under kOldSumKey instead, which is not read any
/// more.
inline constexpr std::string_view kHashKey = "nanquest.nq64p";
inline constexpr std::string_view kHeadKey = "nanquest.head";  ///< nq64 of `head_text`, as 16 hex digits
inline constexpr std::string_view kOldSumKey = "nanquest.checksum";

}  // namespace nanquest::trainer
