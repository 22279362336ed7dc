/// Records of ops as 64-bit words: what an argument or an output was, in schema order, depth first.
///
/// A token is a header word and what its kind needs:
///
///     none, boolean                    value in the header
///     integer, real                    1 word
///     complex                          2 words
///     string                           bytes, padded with zeros to whole words (length in the header)
///     device, generator                type and index in the header
///     list                             length in the header, 1 word naming the element type; the elements
///     follow tensor                           slot and flags in the header; storage offset, sizes, strides
///     tensor that can't be recorded    sizes (not strided memory, an unknown element type, undefined)
///     opaque                           1 word naming the type
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "probe/snapshot/model.h"

namespace nanquest::record {

/// First word of a token.
struct Header {
  ArgKind kind = ArgKind::none;
  std::int8_t scalar_type = 0;  ///< tensor: at::ScalarType; boolean: the value; device: its type
  std::uint8_t dim = 0;         ///< of a tensor
  std::uint8_t flags = 0;       ///< TensorFlag bits of the model, and the two below
  std::int32_t number = 0;      ///< slot of a tensor, length of a list or string, index of a device
  bool slot_known() const { return !(flags & (kTensorUndefined | kTensorOpaque)); }
};
static_assert(sizeof(Header) == sizeof(std::uint64_t));

/// The slot was uninitialised and its bytes came from the host: a host write comes before this op.
inline constexpr std::uint8_t kHostWriteBefore = 1u << 7;
/// An output in memory that is new to the trace: the op wrote it.
inline constexpr std::uint8_t kNewMemory = 1u << 6;

class Reader;

/// A growing array of words that keeps its memory when emptied. Offsets stay valid, addresses don't.
class Words {
 public:
  std::uint32_t size() const { return size_; }
  std::size_t capacity_bytes() const { return capacity_ * sizeof(std::uint64_t); }
  const std::uint64_t* at(std::uint32_t offset) const { return data_.get() + offset; }
  /// Offset of the word that is read next.
  std::uint32_t place_of(const Reader& reader) const;
  void clear() { size_ = 0; }

  /// Room for `count` new words; the pointer is valid until the next call.
  std::uint64_t* extend(std::size_t count) {
    if (size_ + count > capacity_) grow(size_ + count);
    std::uint64_t* const words = data_.get() + size_;
    size_ += static_cast<std::uint32_t>(count);
    return words;
  }
  void put(const Header& header) { *extend(1) = std::bit_cast<std::uint64_t>(header); }
  template <class T>
  void put_value(const T& value) {
    *extend(1) = std::bit_cast<std::uint64_t>(value);
  }

 private:
  void grow(std::size_t wanted) {
    const std::size_t capacity = std::max<std::size_t>({wanted, capacity_ * 2, 4096});
    if (capacity > UINT32_MAX) throw std::bad_alloc();
    auto* moved = static_cast<std::uint64_t*>(std::realloc(data_.get(), capacity * sizeof(std::uint64_t)));
    if (!moved) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(moved);
    capacity_ = capacity;
  }
  struct Freed {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };
  std::unique_ptr<std::uint64_t[], Freed> data_;
  std::size_t capacity_ = 0;
  std::uint32_t size_ = 0;
};

/// Reads tokens one after the other.
class Reader {
 public:
  explicit Reader(const std::uint64_t* words) : at_(words) {}
  Header header() { return value<Header>(); }
  /// The next header, without moving on.
  Header next() const { return std::bit_cast<Header>(*at_); }
  const std::uint64_t* place() const { return at_; }
  template <class T>
  T value() {
    return std::bit_cast<T>(*at_++);
  }
  const std::int64_t* numbers(std::size_t count) {
    const auto* first = reinterpret_cast<const std::int64_t*>(at_);
    at_ += count;
    return first;
  }
  const char* text(std::size_t length) {
    const auto* first = reinterpret_cast<const char*>(at_);
    at_ += (length + 7) / 8;
    return first;
  }

 private:
  const std::uint64_t* at_;
};

/// Words of a tensor's token after its header.
inline std::size_t words_after(const Header& header) {
  if (header.flags & kTensorUndefined) return 0;
  return header.flags & kTensorOpaque ? header.dim : 1 + 2 * std::size_t{header.dim};
}

inline std::uint32_t Words::place_of(const Reader& reader) const {
  return static_cast<std::uint32_t>(reader.place() - data_.get());
}

}  // namespace nanquest::record
