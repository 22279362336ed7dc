/// extent: which elements of a storage two uses of it share.
///
/// Both functions answer on the safe side: `may_overlap` is false only if it is proven that no byte is
/// shared, `covers` is true only if it is proven that every byte is. Proofs cover ranges, and views that
/// repeat with a common period (columns of one matrix, chunks of one projection).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Elements [begin, end) of the storage, from the first to past the last one of the row; elements in between
/// may not belong to it. Empty if the row has no elements.
struct ElementSpan {
  std::int64_t begin = 0, end = 0;
};

/// Nothing for impossible layouts (sizes and strides of different length, negative sizes, an offset before
/// the storage, more than 2^48 elements away).
std::optional<ElementSpan> span_of(const TensorRow& row);

/// True if both rows, of one storage, are the same elements in the same order.
bool same_view(const TensorRow& a, const TensorRow& b);

/// False if the two rows, of one storage, have no byte in common.
bool may_overlap(const TensorRow& a, const TensorRow& b);

/// True if every byte of `inner` is one of `outer`, a row of the same storage.
bool covers(const TensorRow& outer, const TensorRow& inner);

/// Bytes, as ranges that don't touch.
class ByteSet {
 public:
  void add(std::int64_t begin, std::int64_t end);
  /// True if all of [begin, end) is in it.
  bool holds(std::int64_t begin, std::int64_t end) const;

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // begin -> end
};

/// How much of a row later writes have overwritten. Writes are added from the last one back; whole ranges and
/// columns of one period are tracked.
class Overwritten {
 public:
  /// `row` must outlive the object.
  explicit Overwritten(const TensorRow& row);

  /// Adds the next earlier write; false if later ones have overwritten all of it that the row shows.
  bool add(const TensorRow& write);
  /// True if no earlier write can be visible.
  bool complete() const { return complete_; }

 private:
  bool add_columns(const TensorRow& write);

  const TensorRow& row_;
  bool known_, complete_ = false;
  ByteSet ranges_, columns_;
  std::int64_t period_ = 0;  // of the columns, 0 while there are none
};

}  // namespace nanquest
