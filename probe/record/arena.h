/// Memory for what a step keeps: copies of outside values, and bytes written by the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace nanquest::record {

/// Storages up to this size are copied when they are first read, larger ones when an op is about to overwrite
/// them.
inline constexpr std::size_t kCopyAtOnce = 64 << 10;

/// Memory for one step's values. When emptied it keeps its chunks, so a step that repeats the last one reuses
/// them.
class ValueArena {
 public:
  /// Returns `bytes` bytes, 64-byte aligned. Throws std::bad_alloc.
  std::byte* take(std::size_t bytes);
  void clear() { chunk_ = used_ = 0; }
  /// Frees the memory as well.
  void release() {
    clear();
    chunks_.clear();
  }
  std::size_t capacity() const;
  /// How often memory was taken from the system.
  std::uint64_t grown() const { return grown_; }

 private:
  struct Freed {
    std::size_t mapped = 0;  ///< bytes taken directly from the system; 0: from malloc
    void operator()(std::byte* bytes) const;
  };
  static std::unique_ptr<std::byte[], Freed> room_for(std::size_t size);
  struct Chunk {
    std::unique_ptr<std::byte[], Freed> bytes;
    std::size_t size;
  };
  std::vector<Chunk> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // the chunk in use, and how many of its bytes
  std::uint64_t grown_ = 0;
};

}  // namespace nanquest::record
