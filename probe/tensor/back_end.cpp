#include "probe/tensor/back_end.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "probe/numerics/hash.h"
#include "probe/numerics/scan.h"
#include "probe/tensor/cuda_module.h"
#include "probe/tensor/parallel.h"

namespace nanquest {
namespace {

/// `one(data, count)` for each part of a tensor, by several threads if it is large. The parts do not depend
/// on the number of threads, so sums are rounded alike.
template <class Found, class One>
std::vector<Found> for_each_part(DType type, const void* data, std::size_t n, const One& one) {
  const std::size_t size = dtype_size(type), part = kHashPart / size;
  std::vector<Found> found((n + part - 1) / part);
  constexpr auto grain = static_cast<std::int64_t>(kWorthWaking / kHashPart);
  parallel_ranges(static_cast<std::int64_t>(found.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      found[i] = one(static_cast<const char*>(data) + i * part * size, std::min(part, n - i * part));
  });
  return found;
}

bool in_one_part(DType type, std::size_t n) {
  return n * dtype_size(type) <= kHashPart;
}

ScanResult scan_contiguous(DType type, const void* data, std::size_t n) {
  if (in_one_part(type, n)) return scan(type, data, n);
  const auto parts = for_each_part<ScanResult>(
      type, data, n, [&](const void* part, std::size_t count) { return scan(type, part, count); });
  ScanResult all;
  for (const ScanResult& part : parts) all.merge(part);
  return all;
}

ScanAndHash scan_and_hash_contiguous(DType type, const void* data, std::size_t n) {
  if (in_one_part(type, n)) return scan_and_hash(type, data, n);
  const auto parts = for_each_part<ScanAndHash>(
      type, data, n, [&](const void* part, std::size_t count) { return scan_and_hash(type, part, count); });
  ScanAndHash all;
  PartHashes hashes;
  for (const ScanAndHash& part : parts) {
    all.scan.merge(part.scan);
    hashes.add(part.hash);
  }
  all.hash = hashes.finish();
  return all;
}

StatsRow scan_cpu(const at::Tensor& t, DType type, bool hash) {
  const void* data = t.numel() ? t.const_data_ptr() : nullptr;
  const auto n = static_cast<std::size_t>(t.numel());
  const bool contiguous = t.is_contiguous();
  if (hash) {
    const ScanAndHash both = contiguous ? scan_and_hash_contiguous(type, data, n)
                                        : scan_and_hash_strided(type, data, t.sizes(), t.strides());
    StatsRow row = to_row(both.scan);
    row.hash = both.hash;
    row.has_hash = true;
    return row;
  }
  if (!contiguous && t.is_non_overlapping_and_dense()) {
    // Memory order is faster, and only the index of the first bad element depends on the order.
    const StatsRow row = to_row(scan_contiguous(type, data, n));
    if (row.non_finite() == 0) return row;
  }
  return to_row(contiguous ? scan_contiguous(type, data, n)
                           : scan_strided(type, data, t.sizes(), t.strides()));
}

class CpuBackEnd : public BackEnd {
 public:
  StatsRow stats(const at::Tensor& tensor, DType type, bool hash) const override {
    return scan_cpu(tensor, type, hash);
  }
  std::unique_ptr<PendingStats> begin(const at::Tensor&, DType, bool) const override { return nullptr; }
};

/// A copy on the host that is scanned when its statistics are read.
class PendingCopy : public PendingStats {
 public:
  PendingCopy(at::Tensor copy, DType type, bool hash) : copy_(std::move(copy)), type_(type), hash_(hash) {}
  StatsRow read() const override { return scan_cpu(copy_, type_, hash_); }
  std::size_t bytes() const override { return copy_.nbytes(); }

 private:
  at::Tensor copy_;
  DType type_;
  bool hash_;
};

class AnyBackEnd : public BackEnd {
 public:
  StatsRow stats(const at::Tensor& tensor, DType type, bool hash) const override {
    return scan_cpu(tensor.detach().to(at::kCPU), type, hash);
  }
  std::unique_ptr<PendingStats> begin(const at::Tensor& tensor, DType type, bool hash) const override {
    at::Tensor copy = pinned_memory(tensor.sizes(), tensor.scalar_type());
    if (!copy.defined()) return nullptr;
    copy.copy_(tensor.detach(), /*non_blocking=*/true);
    return std::make_unique<PendingCopy>(std::move(copy), type, hash);
  }
};

}  // namespace

StatsRow to_row(const ScanResult& r) {
  StatsRow row;
  row.count = r.count;
  row.nan = r.nan;
  row.pos_inf = r.pos_inf;
  row.neg_inf = r.neg_inf;
  row.zero = r.zero;
  row.subnormal = r.subnormal;
  row.first_bad = r.first_bad;
  row.amax = r.amax;
  row.amin_nonzero = r.amin_nonzero;
  row.sum_squares = r.sum_squares;
  return row;
}

at::Tensor pinned_memory(c10::IntArrayRef sizes, at::ScalarType type) {
  try {
    return at::empty(sizes, at::TensorOptions().dtype(type).device(at::kCPU).pinned_memory(true));
  } catch (const c10::Error&) {
    return {};
  }
}

const BackEnd& any_back_end() {
  static const AnyBackEnd one;
  return one;
}

const BackEnd& back_end_of(c10::DeviceType type) {
  static const CpuBackEnd cpu;
  if (type == c10::kCPU) return cpu;
  if (type == c10::kCUDA && runs_cuda_kernels()) return cuda_back_end();
  return any_back_end();
}

}  // namespace nanquest
