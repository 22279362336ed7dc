#include "trainer/data/order.h"

#include <algorithm>
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

std::vector<std::int64_t> train_rows_at(const Split& split, std::int64_t position, std::int64_t size,
                                        std::uint64_t seed) {
  const auto count = static_cast<std::uint64_t>(split.to_train());
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::uint64_t>(position + i);
    rows.push_back(split.train_row(static_cast<std::int64_t>(shuffled(at % count, count, seed, at / count))));
  }
  return rows;
}

std::vector<std::int64_t> held_out_rows_at(const Split& split, std::int64_t first, std::int64_t size) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = first; i < std::min(first + size, split.held_out()); ++i)
    rows.push_back(split.held_out_row(i));
  return rows;
}

}  // namespace nanquest::trainer
