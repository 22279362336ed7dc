/// last_bit: which number a placebo changes, and by which bit. Plain arithmetic, for trainers and replays
/// alike.
#pragma once

#include <cstdint>

namespace nanquest {

/// The next of a sequence of random numbers; `state` begins as the seed (splitmix64).
inline std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// The bit of an fp32 number that is its last one after rounding to a format with this many fraction bits
/// (fp16: 10, bf16: 7, fp32: 23).
constexpr std::uint32_t last_bit(int fraction_bits) {
  return 1U << (23 - fraction_bits);
}

}  // namespace nanquest
