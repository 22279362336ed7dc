/// Walking a strided view in logical order, run by run. Internal to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::detail {

/// A view without its trivial dimensions, and with neighbouring ones joined if memory allows.
class StridedWalk {
 public:
  /// `sizes` and `strides` (in elements) have equal length; both are read only here.
  StridedWalk(std::size_t element_size, const void* data, std::span<const std::int64_t> sizes,
              std::span<const std::int64_t> strides);

  std::uint64_t count() const { return count_; }  ///< elements of the view
  /// Start of the memory if the view is one contiguous run in logical order, else null.
  const void* contiguous() const;
  /// Copies the next elements in logical order to `out`, at most `capacity`; returns how many, 0 at the end.
  std::size_t next(void* out, std::size_t capacity);

 private:
  // Non-trivial dimensions have two or more elements each: a view with more than 62 would exceed any memory.
  static constexpr int kMaxDims = 62;
  std::size_t element_size_;
  const unsigned char* at_;
  std::uint64_t count_ = 1;
  std::uint64_t left_ = 0;
  int dims_ = 0;
  std::int64_t sizes_[kMaxDims];
  std::int64_t strides_[kMaxDims];  // in bytes
  std::int64_t index_[kMaxDims];

  void advance_outer();
};

}  // namespace nanquest::detail
