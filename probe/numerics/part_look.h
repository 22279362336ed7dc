/// How a device looks at many tensors at once: Σx², the largest |x| and the non-finite elements of each.
///
/// Two kernels. The first has one group of threads for each part of a tensor, the second one for each tensor,
/// which merges its parts. Both are sequences of phases with a barrier between them, and each phase is a
/// function of the thread's number that also runs on the host: tests run both kernels on a CPU, their threads
/// in any order (as part_scan.h). Sums are made in an order that is always the same.
///
///     LookTable table;                                   // of at most 180
///     table.add(DType::float32, data, n);
///     std::vector<LookFound> parts(table.parts());
///     … the device fills `parts` and then the results: look_cuda, or look_here …
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "probe/base/dtype.h"
#include "probe/numerics/gate_loops.h"
#include "probe/numerics/host_device.h"
#include "probe/numerics/scan_element.h"

namespace nanquest {

/// The value of an element, which may be NaN or infinite.
template <class Layout>
NANQUEST_HD double element_value(typename Layout::Bits bits) {
  constexpr std::uint64_t kInfinity = std::uint64_t{0x7ff} << 52, kQuiet = std::uint64_t{1} << 51;
  const auto abs = Layout::magnitude(bits);
  const std::uint64_t sign = Layout::negative(bits) ? std::uint64_t{1} << 63 : 0;
  if (!Layout::finite(abs))
    return double_from_bits(sign | kInfinity | (Layout::is_infinite(abs) ? 0 : kQuiet));
  return double_from_bits(sign | Layout::double_bits(abs));
}

/// Calls `f` with the layout of a type that has a gate loop.
template <class F>
NANQUEST_HD void with_gate_layout(DType type, F&& f) {
  switch (type) {
    case DType::float64:
      return f(LayoutFp64{});
    case DType::float32:
      return f(LayoutFp32{});
    case DType::float16:
      return f(LayoutFp16{});
    default:
      return f(LayoutBf16{});
  }
}

/// What was found in some elements of one tensor. Plain data: a device fills it.
struct LookFound {
  double sum_squares = 0;
  std::uint64_t top = 0;  ///< pattern of the largest magnitude that is no NaN
  std::uint64_t non_finite = 0;

  template <class Layout>
  NANQUEST_HD void add(typename Layout::Bits bits) {
    const auto abs = Layout::magnitude(bits);
    if (abs <= Layout::kFirstBad && abs > top) top = abs;
    non_finite += Layout::finite(abs) ? 0 : 1;
    const double value = element_value<Layout>(bits);
    sum_squares += value * value;
  }
  NANQUEST_HD void merge(const LookFound& other) {
    sum_squares += other.sum_squares;
    if (other.top > top) top = other.top;
    non_finite += other.non_finite;
  }
};

/// The tensors of one launch: a parameter of the kernels, which has to fit into 4 KB.
struct LookTable {
  static constexpr int kMostTensors = 180;
  static constexpr std::uint64_t kPartBytes = std::uint64_t{512} << 10;

  const void* data[kMostTensors];
  std::uint64_t elements[kMostTensors];
  std::uint32_t first[kMostTensors + 1] = {0};  ///< number of each tensor's first part; after the last: of all
  DType type[kMostTensors];
  int count = 0;

  /// `n` elements of a type with a gate loop, aligned to their size. False if the table is full.
  bool add(DType of, const void* memory, std::uint64_t n) {
    if (count == kMostTensors) return false;
    data[count] = memory;
    elements[count] = n;
    type[count] = of;
    first[count + 1] = first[count] + static_cast<std::uint32_t>((n + most(of) - 1) / most(of));
    ++count;
    return true;
  }
  std::uint32_t parts() const { return first[count]; }

  /// Elements in each part of a tensor but the last.
  NANQUEST_HD static constexpr std::uint64_t most(DType of) {
    return kPartBytes / (of == DType::float64 ? 8 : of == DType::float32 ? 4 : 2);
  }
  /// The tensor to which a part belongs.
  NANQUEST_HD int tensor_of(std::uint32_t part) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first[middle] <= part ? low : high) = middle;
    }
    return low;
  }
};

/// Numbers that are read beside the tensors: one element each, of a type with a gate loop.
struct LookNumbers {
  static constexpr int kMost = 8;
  const void* data[kMost];
  DType type[kMost];
  int count = 0;
};
static_assert(sizeof(LookTable) + sizeof(LookNumbers) <= 4000, "the parameters of a kernel: 4 KB");

/// What `count` tensors and the numbers are like, as device_ops.h orders it; `tensor`: the first of the launch.
struct LookResults {
  double* found;
  float* word;
  std::uint64_t count, tensor;

  /// Thread 0 of the group for tensor `index` of the launch.
  NANQUEST_HD void put(int index, DType type, const LookFound& all) const {
    const std::uint64_t at = tensor + static_cast<std::uint64_t>(index);
    with_gate_layout(type, [&](auto layout) {
      using Layout = decltype(layout);
      found[count + at] = element_value<Layout>(static_cast<typename Layout::Bits>(all.top));
    });
    found[at] = all.sum_squares;
    found[2 * count + at] = static_cast<double>(all.non_finite);
    if (all.non_finite > 0 || !is_finite(all.sum_squares)) *word = 1;
  }
  /// A thread for each number, of one group.
  NANQUEST_HD void put_number(const LookNumbers& numbers, int t) const {
    if (t >= numbers.count) return;
    double& value = found[3 * count + static_cast<std::uint64_t>(t)];
    with_gate_layout(numbers.type[t], [&](auto layout) {
      using Layout = decltype(layout);
      value = element_value<Layout>(*static_cast<const typename Layout::Bits*>(numbers.data[t]));
    });
    if (!is_finite(value)) *word = 1;
  }

 private:
  NANQUEST_HD static bool is_finite(double x) { return x - x == 0; }
};

/// The phases of both kernels, for thread `t` of kThreads; `memory` is shared by the threads of a group.
class PartLook {
 public:
  static constexpr int kThreads = 256;
  struct alignas(8) Memory {
    unsigned char room[sizeof(LookFound) * kThreads];
  };
  NANQUEST_HD explicit PartLook(Memory& memory) : memory_(memory) {}

  /// First kernel, phase 1: the elements of one part, sixteen bytes at a time.
  NANQUEST_HD static void look(const LookTable& table, std::uint32_t part, int t, LookFound& mine) {
    const int tensor = table.tensor_of(part);
    with_gate_layout(table.type[tensor], [&](auto layout) {
      using Layout = decltype(layout);
      using Bits = typename Layout::Bits;
      const std::uint64_t most = LookTable::most(table.type[tensor]);
      const std::uint64_t from = (part - table.first[tensor]) * most, left = table.elements[tensor] - from;
      look_at<Layout>(static_cast<const Bits*>(table.data[tensor]) + from, left < most ? left : most, t, mine);
    });
  }
  /// Second kernel, phase 1: the parts of one tensor.
  NANQUEST_HD static void gather(const LookTable& table, int tensor, const LookFound* parts, int t,
                                 LookFound& mine) {
    for (std::uint32_t part = table.first[tensor] + static_cast<std::uint32_t>(t);
         part < table.first[tensor + 1]; part += kThreads)
      mine.merge(parts[part]);
  }
  /// Phases 2 to 4 of both: all threads write what they have; sixteen of them take sixteen each; one takes
  /// these.
  NANQUEST_HD void share(int t, const LookFound& mine) const { found()[t] = mine; }
  NANQUEST_HD void merge_some(int t) const {
    if (t >= kColumns) return;
    for (int other = t + kColumns; other < kThreads; other += kColumns) found()[t].merge(found()[other]);
  }
  NANQUEST_HD const LookFound& merge_all() const {
    for (int other = 1; other < kColumns; ++other) found()[0].merge(found()[other]);
    return found()[0];
  }

 private:
  static constexpr int kColumns = 16;
  NANQUEST_HD LookFound* found() const { return reinterpret_cast<LookFound*>(memory_.room); }

  template <class Layout>
  NANQUEST_HD static void look_at(const typename Layout::Bits* data, std::uint64_t n, int t, LookFound& mine) {
    using Bits = typename Layout::Bits;
    struct alignas(16) Wide {
      Bits bits[16 / sizeof(Bits)];
    };
    constexpr std::uint64_t kWide = 16 / sizeof(Bits);
    const auto first = static_cast<std::uint64_t>(t);
    std::uint64_t wides = 0;
    if (reinterpret_cast<std::uintptr_t>(data) % sizeof(Wide) == 0) {
      wides = n / kWide;
      for (std::uint64_t i = first; i < wides; i += kThreads) {
        Wide wide;
        __builtin_memcpy(&wide, __builtin_assume_aligned(data + i * kWide, sizeof wide), sizeof wide);
        for (const Bits bits : wide.bits) mine.add<Layout>(bits);
      }
    }
    for (std::uint64_t i = wides * kWide + first; i < n; i += kThreads) mine.add<Layout>(data[i]);
  }

  Memory& memory_;
};

/// Both kernels on this thread, on host memory, for tests. `order` is the order of the threads, a permutation
/// of 0 … 255. `found` and `word` as in device_ops.h.
void look_here(std::span<const LookTable> tables, const LookNumbers& numbers, std::span<const int> order,
               double* found, float* word);

/// The tensors of all tables together.
inline std::uint64_t tensors_of(std::span<const LookTable> tables) {
  std::uint64_t all = 0;
  for (const LookTable& table : tables) all += static_cast<std::uint64_t>(table.count);
  return all;
}

}  // namespace nanquest
