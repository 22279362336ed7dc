/// Elements of memory read one at a time, whatever its alignment. Internal to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "probe/numerics/scan.h"

namespace nanquest::detail {

/// Element `i`.
template <class T>
T load_element(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

/// Index of the first element that is not finite, `n` if there is none.
template <class Layout>
std::size_t find_bad(const void* data, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (!Layout::finite(Layout::magnitude(load_element<typename Layout::Bits>(data, i)))) return i;
  return n;
}

/// The bin that counts magnitudes of this exponent.
inline std::size_t histogram_bin(int exponent) {
  return static_cast<std::size_t>(std::clamp(exponent - kHistogramMinExponent, 0, kHistogramBins - 1));
}

}  // namespace nanquest::detail
