/// The shuffled order as a function: no state to save, any position at once.
#pragma once

#include <cstdint>

namespace nanquest::trainer {

/// The element at `index` of a permutation of 0…count-1 chosen by `seed` and `epoch`. A four-round Feistel
/// network over the next even number of bits, walked until the result is below `count` (Black and Rogaway,
/// "Ciphers with arbitrary finite domains", 2002). Needs 0 <= index < count.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch);

}  // namespace nanquest::trainer
