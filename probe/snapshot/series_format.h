/// What the writer and the reader of series agree on. Internal to this room.
#pragma once

#include <bit>
#include <cstdint>

namespace nanquest {

inline constexpr const char* kSeriesFormat = "nanquest.series";
inline constexpr int kSeriesMajor = 1;
inline constexpr const char* kSeriesVersion = "1.0";

/// Stands where no row was written yet: a NaN with a payload that no arithmetic makes. A reader that sees a
/// table grown before its bytes arrived takes those rows for absent.
inline constexpr std::uint64_t kUnwritten = 0x7ff8'6e61'6e71'5e72ull;
inline double unwritten_value() {
  return std::bit_cast<double>(kUnwritten);
}
inline bool is_unwritten(double x) {
  return std::bit_cast<std::uint64_t>(x) == kUnwritten;
}

}  // namespace nanquest
