/// How a device computes statistics and hash of a tensor: one group of threads for each part (512 KiB).
///
/// The kernel is a sequence of phases with a barrier between them. Each phase is a function of the thread's
/// number that also runs on the host, so tests run the whole kernel on a CPU, its threads in any order. Only
/// the launch and the barrier need a GPU.
///
/// Counts, extremes and hashes are the CPU's, bit for bit. Σx² is summed in another order, which is always
/// the same.
///
///     std::vector<PartFound> found(part_count(type, n));
///     … the device fills them: scan_parts_cuda, or scan_parts_here …
///     ScanAndHash all = merge_parts(type, n, found);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "probe/base/dtype.h"
#include "probe/numerics/hash_element.h"
#include "probe/numerics/scan_element.h"

namespace nanquest {

/// What was found in one part; indices count from the beginning of the part. Plain data: a device fills it.
struct PartFound {
  ElementStats stats;
  std::uint64_t hash = 0;  ///< nq64 of the part's bytes
};

/// Integers: only zeros and the largest magnitude are counted.
template <class T>
struct IntegerLayout {
  using Bits = T;
};

/// Adds one element of either kind.
template <class Layout>
NANQUEST_HD void add_element(ElementStats& stats, typename Layout::Bits bits, std::uint64_t index) {
  if constexpr (std::is_same_v<Layout, IntegerLayout<typename Layout::Bits>>) {
    std::uint64_t magnitude = 0;
    if constexpr (std::is_signed_v<typename Layout::Bits>) {
      const std::int64_t wide = std::int64_t{1} * bits;
      magnitude = static_cast<std::uint64_t>(wide);
      if (wide < 0) magnitude = 0 - magnitude;
    } else {
      magnitude = bits;
    }
    stats.zero += magnitude == 0;
    if (magnitude > stats.abs_max) stats.abs_max = magnitude;
  } else {
    stats.add<Layout>(bits, index);
  }
}

/// The work on one part, for thread `t` of kThreads; `memory` is shared by the threads.
template <class Layout>
class PartScan {
 public:
  using Bits = typename Layout::Bits;
  static constexpr int kThreads = 256;
  static constexpr int kBlocks = static_cast<int>(kHashPart / kHashBlock);
  /// The sums of each block's lanes, later reused for the threads' statistics; the lanes.
  struct alignas(8) Memory {
    unsigned char room[sizeof(std::uint64_t) * kHashLanes * kBlocks];
    std::uint64_t lanes[kHashLanes];
  };
  static_assert(sizeof(ElementStats) * kThreads <= sizeof(Memory::room));

  /// `elements` of `data`, at most one part, in device memory.
  NANQUEST_HD PartScan(const Bits* data, std::uint64_t elements, Memory& memory)
      : data_(data), elements_(elements), bytes_(elements * sizeof(Bits)), memory_(memory) {}

  /// Phase 1: four threads take a block, each two lanes of its stripes.
  NANQUEST_HD void sum_blocks(int t, ElementStats& mine) const {
    auto* sums = reinterpret_cast<std::uint64_t*>(memory_.room);
    const int first_lane = 2 * (t % 4);
    for (std::uint64_t block = static_cast<std::uint64_t>(t) / 4; block * kHashBlock < bytes_;
         block += kThreads / 4) {
      std::uint64_t even = 0, odd = 0;
      for (int stripe = 0; stripe < kHashStripes; ++stripe) {
        const std::uint64_t at = block * kHashBlock + static_cast<std::uint64_t>(stripe) * kHashLanes * 8;
        if (at >= bytes_) break;  // a started stripe is padded with zeros; other stripes do not exist
        const int key = kHashLanes * stripe + first_lane;
        const std::uint64_t a = word(at + static_cast<std::uint64_t>(first_lane) * 8, mine);
        const std::uint64_t b = word(at + static_cast<std::uint64_t>(first_lane) * 8 + 8, mine);
        even += hash_product(a, hash_key(key)) + b;
        odd += hash_product(b, hash_key(key + 1)) + a;
      }
      sums[block * kHashLanes + static_cast<std::uint64_t>(first_lane)] = even;
      sums[block * kHashLanes + static_cast<std::uint64_t>(first_lane) + 1] = odd;
    }
  }

  /// Phase 2: a thread for each lane goes from block to block.
  NANQUEST_HD void chain_blocks(int t) const {
    if (t >= kHashLanes) return;
    const auto* sums = reinterpret_cast<const std::uint64_t*>(memory_.room);
    const std::uint64_t key = hash_key(kHashScrambleKeys + t);
    std::uint64_t lane = hash_key(kHashInitialKeys + t);
    for (std::uint64_t block = 0; block * kHashBlock < bytes_; ++block)
      lane = hash_scramble(lane + sums[block * kHashLanes + static_cast<std::uint64_t>(t)], key);
    memory_.lanes[t] = lane;
  }

  /// Phase 3: all threads write their statistics to shared memory.
  NANQUEST_HD void share(int t, const ElementStats& mine) const { stats()[t] = mine; }

  /// Phase 4: sixteen threads take sixteen each.
  NANQUEST_HD void merge_some(int t) const {
    if (t >= kColumns) return;
    for (int other = t + kColumns; other < kThreads; other += kColumns) stats()[t].merge(stats()[other]);
  }

  /// Phase 5: one thread merges the rest and writes the result.
  NANQUEST_HD void finish(int t, PartFound& out) const {
    if (t != 0) return;
    for (int other = 1; other < kColumns; ++other) stats()[0].merge(stats()[other]);
    out.stats = stats()[0];
    out.hash = hash_of_lanes(bytes_, memory_.lanes);
  }

 private:
  static constexpr int kColumns = 16;
  NANQUEST_HD ElementStats* stats() const { return reinterpret_cast<ElementStats*>(memory_.room); }

  /// The eight bytes from `at`, zeros after the end of the part; their elements are counted.
  NANQUEST_HD std::uint64_t word(std::uint64_t at, ElementStats& mine) const {
    std::uint64_t bits = 0;
    const std::uint64_t first = at / sizeof(Bits);
    for (std::uint64_t i = 0; i < sizeof(std::uint64_t) / sizeof(Bits) && first + i < elements_; ++i) {
      const Bits one = data_[first + i];
      add_element<Layout>(mine, one, first + i);
      bits |= static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Bits>>(one))
              << (8 * sizeof(Bits) * i);
    }
    return bits;
  }

  const Bits* data_;
  std::uint64_t elements_, bytes_;
  Memory& memory_;
};

/// Calls `f` with the layout of elements of `type` (for complex ones, that of their parts).
template <class F>
void with_device_layout(DType type, F&& f) {
  switch (type) {
    case DType::float64:
    case DType::complex128:
      return f(LayoutFp64{});
    case DType::float32:
    case DType::complex64:
      return f(LayoutFp32{});
    case DType::float16:
      return f(LayoutFp16{});
    case DType::bfloat16:
      return f(LayoutBf16{});
    case DType::float8_e4m3fn:
      return f(LayoutE4m3{});
    case DType::float8_e5m2:
      return f(LayoutE5m2{});
    case DType::int64:
      return f(IntegerLayout<std::int64_t>{});
    case DType::int32:
      return f(IntegerLayout<std::int32_t>{});
    case DType::int16:
      return f(IntegerLayout<std::int16_t>{});
    case DType::int8:
      return f(IntegerLayout<std::int8_t>{});
    case DType::uint64:
      return f(IntegerLayout<std::uint64_t>{});
    case DType::uint32:
      return f(IntegerLayout<std::uint32_t>{});
    case DType::uint16:
      return f(IntegerLayout<std::uint16_t>{});
    case DType::uint8:
    case DType::boolean:
      return f(IntegerLayout<std::uint8_t>{});
  }
}

/// Parts of `n` elements; complex ones count as two.
std::size_t part_count(DType type, std::size_t n);

/// First element and number of elements of part number `part`; complex elements count as two.
struct PartRange {
  std::size_t first, count;
};
PartRange part_range(DType type, std::size_t n, std::size_t part);

/// The statistics and hash of the tensor from all its parts.
ScanAndHash merge_parts(DType type, std::size_t n, std::span<const PartFound> parts);

/// The kernel on this thread: `n` contiguous elements of host memory, aligned to their size. For tests:
/// `order` is the order of the threads, a permutation of 0 … 255.
void scan_parts_here(DType type, const void* data, std::size_t n, std::span<const int> order,
                     std::span<PartFound> out);

}  // namespace nanquest
