/// The arithmetic of nq64 (hash.h), shared by CPU and CUDA.
#pragma once

#include <cstdint>

#include "probe/numerics/host_device.h"

namespace nanquest {

inline constexpr int kHashLanes = 8;
inline constexpr int kHashStripes = 16;  ///< in a block
inline constexpr int kHashInitialKeys = kHashLanes * kHashStripes;
inline constexpr int kHashScrambleKeys = kHashInitialKeys + kHashLanes;
inline constexpr int kHashFinalKeys = kHashScrambleKeys + kHashLanes;
inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;

NANQUEST_HD constexpr std::uint64_t hash_mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Key number `i`: splitmix64's output for the seed "nanquest".
NANQUEST_HD constexpr std::uint64_t hash_key(int i) {
  return hash_mix(0x6e616e7175657374ULL + (static_cast<std::uint64_t>(i) + 1) * kGoldenRatio);
}

/// What a word adds to its own lane; the word itself is added to the lane beside it.
NANQUEST_HD constexpr std::uint64_t hash_product(std::uint64_t word, std::uint64_t key) {
  const std::uint64_t k = word ^ key;
  return (k & 0xffffffffU) * (k >> 32);
}

/// The end of a block, for one lane; `key` is the lane's scramble key.
NANQUEST_HD constexpr std::uint64_t hash_scramble(std::uint64_t lane, std::uint64_t key) {
  return (lane ^ (lane >> 47) ^ key) * 0x9e3779b1U;
}

/// The hash of `length` bytes from their lanes.
NANQUEST_HD constexpr std::uint64_t hash_of_lanes(std::uint64_t length, const std::uint64_t* lanes) {
  std::uint64_t h = length * kGoldenRatio;
  for (int j = 0; j < kHashLanes; ++j) h = hash_mix(h ^ lanes[j]) + hash_key(kHashFinalKeys + j);
  return hash_mix(h);
}

}  // namespace nanquest
