/// Bytes that are easy to reproduce.
#pragma once

#include <cstddef>
#include <vector>

namespace nanquest::testing {

/// `n` bytes that repeat themselves every 64 KiB.
inline std::vector<unsigned char> pattern(std::size_t n) {
  std::vector<unsigned char> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(i * 131 + (i >> 8) * 17 + 7);
  return bytes;
}

}  // namespace nanquest::testing
