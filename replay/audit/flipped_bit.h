/// flipped_bit: a result differs from the recorded one of which only the hash is known: which single bit of
/// which element, if it is one, by trying all.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace nanquest {

struct FlippedBit {
  std::int64_t element = 0;  ///< of the flattened tensor
  int bit = 0;               ///< 0: the last of the mantissa
  double here = 0, recorded = 0;
};

/// The bit of `here` (a CPU tensor of real numbers) that, turned over, gives `hash` (hash_contents). Nothing
/// if there is none, or if trying all would take more than about `seconds`.
std::optional<FlippedBit> find_flipped_bit(const at::Tensor& here, std::uint64_t hash, double seconds);

}  // namespace nanquest
