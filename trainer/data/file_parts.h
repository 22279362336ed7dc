/// The parts of prepared data files. Inside this room only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nanquest::trainer {

/// Returns the parts of a file one after the other, each beginning at a multiple of 8.
class Cutter {
 public:
  explicit Cutter(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  std::span<const T> take(std::uint64_t count) {
    if (short_ || count > (bytes_.size() - at_) / sizeof(T)) {
      short_ = true;
      return {};
    }
    // Mapped memory begins at a page, and `at_` is a multiple of 8.
    const auto* first = reinterpret_cast<const T*>(bytes_.data() + at_);
    at_ = std::min((at_ + count * sizeof(T) + 7) / 8 * 8, bytes_.size());
    return {first, count};
  }
  bool ended() const { return !short_ && at_ == bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  bool short_ = false;
};

/// Whether `ends` goes from 0 to `last` in steps of at least `least`.
inline bool climbs(std::span<const std::uint64_t> ends, std::uint64_t last, std::uint64_t least) {
  if (ends.front() != 0 || ends.back() != last) return false;
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i] < ends[i - 1] || ends[i] - ends[i - 1] < least) return false;
  return true;
}

}  // namespace nanquest::trainer
