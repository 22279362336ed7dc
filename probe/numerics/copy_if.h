/// How a device copies many tensors if a number there is not 0: one kernel, a group of threads for each part.
///
///     CopyTable table;                        // of at most 140
///     table.add(to, from, bytes);
///     … copy_if_cuda, or on the host: for each part, for each thread, CopyTable::copy …
///
/// A thread's work is a function that also runs on the host, where tests call it with threads in any order.
#pragma once

#include <cstdint>

#include "probe/numerics/host_device.h"

namespace nanquest {

/// The tensors of one launch: a parameter of the kernel, which has to fit into 4 KB.
struct CopyTable {
  static constexpr int kMost = 140;
  static constexpr int kThreads = 256;
  static constexpr std::uint64_t kPartBytes = std::uint64_t{512} << 10;

  void* to[kMost];
  const void* from[kMost];
  std::uint64_t bytes[kMost];
  std::uint32_t first[kMost + 1] = {0};  ///< number of each tensor's first part; after the last: of all
  int count = 0;

  /// False if the table is full. The two must not overlap.
  bool add(void* target, const void* source, std::uint64_t n) {
    if (count == kMost) return false;
    to[count] = target;
    from[count] = source;
    bytes[count] = n;
    first[count + 1] = first[count] + static_cast<std::uint32_t>((n + kPartBytes - 1) / kPartBytes);
    ++count;
    return true;
  }
  std::uint32_t parts() const { return first[count]; }

  /// What thread `thread` of `kThreads` copies of a part.
  NANQUEST_HD static void copy(const CopyTable& table, std::uint32_t part, int thread) {
    int low = 0, high = table.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (table.first[middle] <= part ? low : high) = middle;
    }
    const std::uint64_t begin = (part - table.first[low]) * kPartBytes;
    const std::uint64_t n = table.bytes[low] - begin < kPartBytes ? table.bytes[low] - begin : kPartBytes;
    auto* const target = static_cast<unsigned char*>(table.to[low]) + begin;
    const auto* const source = static_cast<const unsigned char*>(table.from[low]) + begin;
    // Whole tensors lie on multiples of 8 bytes; parts of others may not.
    const bool wide =
        (reinterpret_cast<std::uintptr_t>(target) | reinterpret_cast<std::uintptr_t>(source)) % 8 == 0;
    const std::uint64_t words = wide ? n / 8 : 0;
    for (auto i = static_cast<std::uint64_t>(thread); i < words; i += kThreads)
      reinterpret_cast<std::uint64_t*>(target)[i] = reinterpret_cast<const std::uint64_t*>(source)[i];
    for (auto i = 8 * words + static_cast<std::uint64_t>(thread); i < n; i += kThreads) target[i] = source[i];
  }
};
static_assert(sizeof(CopyTable) <= 4000, "the parameters of a kernel: 4 KB");

}  // namespace nanquest
