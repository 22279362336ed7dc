/// The shuffled order as a function: no state to save, any position at once.
#pragma once

#include <cstdint>
#include <vector>

namespace nanquest::trainer {

/// The element at `index` of a permutation of 0…count-1 chosen by `seed` and `epoch`. A four-round Feistel
/// network over the next even number of bits, walked until the result is below `count` (Black and Rogaway,
/// "Ciphers with arbitrary finite domains", 2002). Needs 0 <= index < count.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t epoch);

/// The same for groups: 0…group-1, the `group` after them and so on stay together, in an order of their own;
/// the groups are shuffled, and an incomplete group comes last. `group` 0 or 1 is `shuffled`.
std::uint64_t shuffled_in_groups(std::uint64_t index, std::uint64_t count, std::uint64_t group,
                                 std::uint64_t seed, std::uint64_t epoch);

/// Which of a number of rows are learned from and which are held out: the last one of each `every`; none for
/// 0.
class Split {
 public:
  /// `every` is not 1.
  Split(std::int64_t rows, std::int64_t every) : rows_(rows), every_(every) {}

  std::int64_t held_out() const { return every_ > 0 ? rows_ / every_ : 0; }
  std::int64_t to_train() const { return rows_ - held_out(); }
  /// The row that is number `index` of those to learn from.
  std::int64_t train_row(std::int64_t index) const {
    return every_ > 0 ? index + index / (every_ - 1) : index;
  }
  /// The row that is number `index` of those held out.
  std::int64_t held_out_row(std::int64_t index) const { return (index + 1) * every_ - 1; }

 private:
  std::int64_t rows_, every_;
};

/// Rows [position, position + size) of the endless order of those to learn from: a permutation for each pass,
/// one after the other.
std::vector<std::int64_t> train_rows_at(const Split& split, std::int64_t position, std::int64_t size,
                                        std::uint64_t seed);
/// Held-out rows [first, first + size), as far as they exist.
std::vector<std::int64_t> held_out_rows_at(const Split& split, std::int64_t first, std::int64_t size);

}  // namespace nanquest::trainer
