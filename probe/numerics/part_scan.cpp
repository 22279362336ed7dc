#include "probe/numerics/part_scan.h"

#include <algorithm>
#include <array>

#include "probe/numerics/hash.h"

namespace nanquest {
namespace {

std::size_t reals(DType type, std::size_t n) {
  return dtype_is_complex(type) ? 2 * n : n;
}

std::size_t real_size(DType type) {
  return dtype_is_complex(type) ? dtype_size(type) / 2 : dtype_size(type);
}

/// Integers: zeros and the largest magnitude.
ScanResult integers_of(DType type, const ElementStats& s, std::size_t n) {
  ScanResult r;
  r.count = n;
  r.zero = s.zero;
  r.amax = static_cast<double>(s.abs_max);
  if (type == DType::boolean) r.amax = std::min(r.amax, 1.0);
  return r;
}

template <class Layout>
void scan_part(const typename Layout::Bits* data, std::size_t n, std::span<const int> order, PartFound& out) {
  using Scan = PartScan<Layout>;
  typename Scan::Memory memory;
  const Scan scan(data, n, memory);
  std::array<ElementStats, Scan::kThreads> mine;
  const auto phase = [&](auto&& work) {
    for (const int t : order) work(t);
  };
  phase([&](int t) { scan.sum_blocks(t, mine[static_cast<std::size_t>(t)]); });
  phase([&](int t) { scan.chain_blocks(t); });
  phase([&](int t) { scan.share(t, mine[static_cast<std::size_t>(t)]); });
  phase([&](int t) { scan.merge_some(t); });
  phase([&](int t) { scan.finish(t, out); });
}

}  // namespace

std::size_t part_count(DType type, std::size_t n) {
  return (n * dtype_size(type) + kHashPart - 1) / kHashPart;
}

PartRange part_range(DType type, std::size_t n, std::size_t part) {
  const std::size_t most = kHashPart / real_size(type), first = part * most;
  return {first, std::min(most, reals(type, n) - first)};
}

ScanAndHash merge_parts(DType type, std::size_t n, std::span<const PartFound> parts) {
  ScanAndHash all;
  PartHashes hashes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t count = part_range(type, n, i).count;
    with_device_layout(type, [&](auto layout) {
      using Layout = decltype(layout);
      if constexpr (requires { Layout::kHasInf; })
        all.scan.merge(result_of<Layout>(parts[i].stats, count));
      else
        all.scan.merge(integers_of(type, parts[i].stats, count));
    });
    hashes.add(parts[i].hash);
  }
  all.hash = hashes.finish();
  return all;
}

void scan_parts_here(DType type, const void* data, std::size_t n, std::span<const int> order,
                     std::span<PartFound> out) {
  with_device_layout(type, [&](auto layout) {
    using Layout = decltype(layout);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const PartRange range = part_range(type, n, i);
      scan_part<Layout>(static_cast<const typename Layout::Bits*>(data) + range.first, range.count, order,
                        out[i]);
    }
  });
}

}  // namespace nanquest
