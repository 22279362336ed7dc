/// Names of element types in the safetensors format, and the checksum of ours.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <cstring>
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

inline constexpr std::string_view kChecksumKey = "nanquest.checksum";

/// 64-bit checksum fed in pieces: FNV-1a over 8-byte words (the rest byte by byte) with a final mix. Finds
/// damage, not forgery. Pieces must be fed in the same sizes to give the same sum.
class Checksum {
 public:
  void add(const void* data, std::size_t size) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; size >= 8; p += 8, size -= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, p, 8);
      state_ = (state_ ^ word) * kPrime;
      state_ ^= state_ >> 29;
    }
    for (; size > 0; ++p, --size) state_ = (state_ ^ *p) * kPrime;
  }
  std::uint64_t value() const { return (state_ ^ (state_ >> 32)) * kPrime; }

 private:
  static constexpr std::uint64_t kPrime = 0x100000001b3u;
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

}  // namespace nanquest::trainer
