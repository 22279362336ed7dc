// Prefetching while the kernels compute. Included only by kernels.h, once per instruction set; the rules at
// its top apply.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/numerics/implementation.h"

namespace nanquest::detail {
namespace {

/// A block is read twice: first for counts and extremes, then for the squares, from the first-level cache.
/// Without prefetching, memory would be idle during one of the two passes. Each pass prefetches in proportion
/// to its share of the work: the first a quarter of the lines, the second the rest; or, if exponents are
/// counted, the second a quarter and the third half. A pass that is the only one prefetches all lines.
enum class Pass { counts, squares, only };
constexpr std::size_t kLine = 64;
constexpr std::size_t kFetchEvery = 4 * kLine;

/// Where the prefetched lines of a block are, counted from the next block: the upper halves of its two pages
/// and the lower halves of the two pages after it. A processor follows one stream in a page and waits for
/// that page's address. With pages of 4 KiB, several streams at once were measured to be 1.5 times as fast as
/// one after the other; with large pages there is no difference.
constexpr std::size_t kPage = 4096;
static_assert(kScanBlock == 2 * kPage);
constexpr std::size_t kStream =
    kPage / 2;  // bytes of a stream; for kFetchEvery bytes of a block one line of it is prefetched
static_assert(kScanBlock / kFetchEvery == kStream / kLine);
constexpr std::size_t kStreams[4] = {kPage / 2, kPage + kPage / 2, kScanBlock, kScanBlock + kPage};

/// The streams of a block. A stream that would leave the memory that will be read stays in the block itself,
/// which is in the cache: that is cheaper than a check at every line.
class LinesAhead {
 public:
  [[gnu::always_inline]] inline explicit LinesAhead(Ahead ahead) {
    const auto block = reinterpret_cast<std::uintptr_t>(ahead.block);
    const auto end = reinterpret_cast<std::uintptr_t>(ahead.end);
    for (int k = 0; k < 4; ++k) {
      const std::uintptr_t at = block + kScanBlock + kStreams[k];
      streams_[k] = reinterpret_cast<const char*>(at + kStream <= end ? at : block);
    }
  }
  /// Prefetches the line at `offset` in the streams First … Last - 1.
  template <int First, int Last>
  [[gnu::always_inline]] inline void fetch(std::size_t offset) const {
    for (int k = First; k < Last; ++k) __builtin_prefetch(streams_[k] + offset, 0, 3);
  }

 private:
  const char* streams_[4];
};

/// The share of the third pass over a block: the third and fourth stream, two lines of each at a time.
class RestOfLines {
 public:
  explicit RestOfLines(Ahead ahead) : lines_(ahead) {}
  [[gnu::always_inline]] inline void fetch_some() {
    if (next_ == kStream) return;
    lines_.fetch<2, 4>(next_);
    lines_.fetch<2, 4>(next_ + kLine);
    next_ += 2 * kLine;
  }
  void fetch_all() {
    while (next_ != kStream) fetch_some();
  }

 private:
  LinesAhead lines_;
  std::size_t next_ = 0;
};

/// Calls `f(pointer)` for every `Step` bytes of the whole kFetchEvery of `bytes`, prefetches at each of those
/// the next line of the streams First … Last - 1, and returns the number of these bytes.
template <int First, int Last, std::size_t Step, class F>
[[gnu::always_inline]] inline std::size_t for_groups(const char* p, std::size_t bytes,
                                                     const LinesAhead& ahead, F&& f) {
  static_assert(kFetchEvery % Step == 0);
  std::size_t i = 0;
  for (; i + kFetchEvery <= bytes; i += kFetchEvery) {
    ahead.fetch<First, Last>(i / kFetchEvery * kLine);
    for (std::size_t k = 0; k < kFetchEvery; k += Step) f(p + i + k);
  }
  return i;
}

/// Calls `f(pointer)` for every whole `Step` bytes of `bytes`, and returns the number of these bytes.
/// Prefetches the share of `pass` meanwhile.
template <Pass pass, std::size_t Step = kLine, class F>
[[gnu::always_inline]] inline std::size_t for_lines(const char* p, std::size_t bytes, Ahead ahead, F&& f) {
  const LinesAhead lines(ahead);
  std::size_t i = 0;
  if constexpr (pass == Pass::only) i = for_groups<0, 4, Step>(p, bytes, lines, f);
  if constexpr (pass == Pass::counts) i = for_groups<0, 1, Step>(p, bytes, lines, f);
  if constexpr (pass == Pass::squares)
    i = ahead.three_passes ? for_groups<1, 2, Step>(p, bytes, lines, f)
                           : for_groups<1, 4, Step>(p, bytes, lines, f);
  for (; i + Step <= bytes; i += Step) f(p + i);
  return i;
}

}  // namespace
}  // namespace nanquest::detail
