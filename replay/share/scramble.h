/// scramble: replaces a tensor's values so that the original can't be read, but the tensor still behaves
/// alike: same shape and type, same places of zero, NaN and Inf, similar magnitudes.
///
///     Scrambler scrambler;
///     scrambler.scramble(tensor, vocabulary);
///
/// Random numbers come from the system and are not stored anywhere.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "probe/snapshot/reader.h"

namespace nanquest {

class Scrambler {
 public:
  Scrambler();

  /// Replaces the values of `tensor`. Floats (complex ones part by part): in each slice of the first axis
  /// sign and exponent of the values change places, and all further bits are random; zeros, NaN and Inf stay
  /// where they are; the largest magnitude stays within a sixteenth of the original, and never grows.
  /// Integers: numbers change places within each slice, and each number becomes another of 0 … `vocabulary` -
  /// 1 (0: up to the largest that occurs), the same one wherever this scrambler meets that vocabulary. -1 and
  /// -100, which mean "none", stay. bool, and integers that are only 0 and 1: change places within each row
  /// of the last axis, so that a completely masked row stays so.
  void scramble(TensorData& tensor, std::int64_t vocabulary = 0);

 private:
  /// A random one-to-one map of [low, high] to itself, drawn as needed.
  struct Bijection {
    std::unordered_map<std::int64_t, std::int64_t> image;
    std::unordered_set<std::int64_t> used;
  };

  void floats(std::byte* bytes, std::size_t count, std::size_t slice, int mantissa_bits, int width);
  template <class T>
  void integers(std::byte* bytes, std::size_t count, std::size_t slice, std::size_t row,
                std::int64_t vocabulary);
  std::int64_t image(Bijection& map, std::int64_t value, std::int64_t low, std::int64_t high);
  std::uint64_t below(std::uint64_t bound);

  std::mt19937_64 random_;
  std::map<std::int64_t, Bijection> vocabularies_;
};

}  // namespace nanquest
