// What the kernels ask memory for while they compute.
// Included by kernels.h alone, once per instruction set; the rules at its top hold here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/numerics/implementation.h"

namespace nanquest::detail {
namespace {

/// A block is read twice: counts and extremes first, then the squares out of the first-level cache. Memory
/// would be idle during one of the two passes if nobody asked for the next blocks meanwhile. Each pass asks
/// for the share that it is of the work: the first for a quarter of the lines, the second for the rest, or
/// where exponents are counted for a quarter, and their pass for half; a pass that is the only one asks for
/// all of them.
enum class Pass { counts, squares, only };
constexpr std::size_t kLine = 64;
constexpr std::size_t kFetchEvery = 4 * kLine;

/// Where the lines that a block asks for are, counted from the next block: the upper halves of its two pages
/// and the lower halves of the two pages after it, one line of each in turn. A processor follows one stream
/// in a page and waits for that page's address: with pages of 4 KiB, four at once were measured to be 1.5
/// times as fast as one after the other; with large pages it makes no difference.
constexpr std::size_t kPage = 4096;
static_assert(kScanBlock == 2 * kPage);
constexpr std::size_t kStreams[4] = {kPage / 2, kPage + kPage / 2, kScanBlock, kScanBlock + kPage};

/// Asks for line number `nth` of the kScanBlock / kLine that a block asks for; past the end, for the last
/// line again.
[[gnu::always_inline]] inline void fetch_line(Ahead ahead, std::size_t nth) {
  const auto end = reinterpret_cast<std::uintptr_t>(ahead.end);
  const auto at =
      reinterpret_cast<std::uintptr_t>(ahead.block) + kScanBlock + kStreams[nth % 4] + nth / 4 * kLine;
  __builtin_prefetch(reinterpret_cast<const void*>(at < end ? at : end - 1), 0, 3);
}

/// The share of the third pass over a block, a line of each stream at a time.
class RestOfLines {
 public:
  explicit RestOfLines(Ahead ahead) : ahead_(ahead) {}
  [[gnu::always_inline]] inline void fetch_some() {
    if (next_ == kScanBlock / kLine) return;
    for (std::size_t i = 0; i < 4; ++i) fetch_line(ahead_, next_ + i);
    next_ += 4;
  }
  void fetch_all() {
    while (next_ != kScanBlock / kLine) fetch_some();
  }

 private:
  Ahead ahead_;
  std::size_t next_ = kScanBlock / kLine / 2;
};

/// Asks for the share of `pass` of what belongs to the kFetchEvery bytes at `offset`.
template <Pass pass>
[[gnu::always_inline]] inline void fetch_ahead(Ahead ahead, std::size_t offset) {
  constexpr std::size_t all = kScanBlock / kLine;
  constexpr std::size_t first = pass == Pass::squares ? all / 4 : 0;
  const std::size_t lines = pass == Pass::only ? 4 : pass == Pass::counts || ahead.three_passes ? 1 : 3;
  for (std::size_t i = 0; i < lines; ++i) fetch_line(ahead, first + offset / kFetchEvery * lines + i);
}

/// Calls `f(pointer)` for every whole `Step` bytes of `bytes`, and returns how many bytes those are.
template <Pass pass, std::size_t Step = kLine, class F>
[[gnu::always_inline]] inline std::size_t for_lines(const char* p, std::size_t bytes, Ahead ahead, F&& f) {
  static_assert(kFetchEvery % Step == 0);
  std::size_t i = 0;
  for (; i + kFetchEvery <= bytes; i += kFetchEvery) {
    fetch_ahead<pass>(ahead, i);
    for (std::size_t k = 0; k < kFetchEvery; k += Step) f(p + i + k);
  }
  for (; i + Step <= bytes; i += Step) f(p + i);
  return i;
}

}  // namespace
}  // namespace nanquest::detail
