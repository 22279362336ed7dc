/// Constants that the writer and the reader of series share. Internal to this room.
#pragma once

#include <bit>
#include <cstdint>

namespace nanquest {

inline constexpr const char* kSeriesFormat = "nanquest.series";
inline constexpr int kSeriesMajor = 1;
inline constexpr const char* kSeriesVersion = "1.0";

/// Marks a row that is not written yet: a NaN with a payload that no arithmetic makes. If a reader sees a
/// table that has grown before its bytes arrived, it ignores those rows.
inline constexpr std::uint64_t kUnwritten = 0x7ff8'6e61'6e71'5e72ull;
inline double unwritten_value() {
  return std::bit_cast<double>(kUnwritten);
}
inline bool is_unwritten(double x) {
  return std::bit_cast<std::uint64_t>(x) == kUnwritten;
}

}  // namespace nanquest
