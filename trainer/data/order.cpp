#include "trainer/data/order.h"

#include <bit>

namespace nanquest::trainer {
namespace {

/// Mixes 64 bits (finaliser of Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch) {
  if (count <= 1) return 0;
  const int half = (static_cast<int>(std::bit_width(count - 1)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  const std::uint64_t key = mix(mix(seed) ^ epoch);
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t next = left ^ (mix(right ^ mix(key + round)) & mask);
      left = right;
      right = next;
    }
    index = (left << half) | right;
  } while (index >= count);
  return index;
}

std::uint64_t shuffled_in_groups(std::uint64_t index, std::uint64_t count, std::uint64_t group,
                                 std::uint64_t seed, std::uint64_t epoch) {
  if (group <= 1) return shuffled(index, count, seed, epoch);
  const std::uint64_t groups = count / group, whole = groups * group;
  if (index >= whole) return whole + shuffled(index - whole, count - whole, seed, epoch);
  const std::uint64_t chosen = shuffled(index / group, groups, seed, epoch);
  return chosen * group + shuffled(index % group, group, mix(seed ^ chosen), epoch);
}

}  // namespace nanquest::trainer
