#include "probe/tensor/later_scans.h"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>

#include "probe/tensor/parallel.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// Pinned memory like the tensor, in logical order; undefined where the device has none.
at::Tensor pinned_like(const at::Tensor& tensor) {
  try {
    return at::empty(tensor.sizes(),
                     at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU).pinned_memory(true));
  } catch (const c10::Error&) {
    return {};
  }
}

}  // namespace

bool LaterScans::take(const at::Tensor& tensor, bool hash, std::int32_t row) {
  if (tensor.is_cpu() || !is_plain(tensor) || !dtype_of(tensor.scalar_type())) return false;
  at::Tensor copy = pinned_like(tensor);
  if (!copy.defined()) return false;
  copy.copy_(tensor.detach(), /*non_blocking=*/true);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device());
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  bytes_ += copy.nbytes();
  scans_.push_back({std::move(copy), hash, row});
  return true;
}

LaterScans::~LaterScans() {
  try {
    wait();
  } catch (const std::exception&) {  // the device failed, which is the program's to find out: nothing writes
                                     // any more
  }
}

void LaterScans::wait() {
  for (const c10::Stream& stream : std::exchange(streams_, {}))
    c10::impl::VirtualGuardImpl(stream.device_type()).synchronizeStream(stream);
}

std::vector<std::pair<std::int32_t, StatsRow>> LaterScans::read() {
  const std::vector<Scan> scans = std::exchange(scans_, {});
  bytes_ = 0;
  wait();
  std::vector<std::pair<std::int32_t, StatsRow>> rows(scans.size());
  std::atomic<std::size_t> next{0};
  parallel_ranges(threads_here(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i; (i = next++) < scans.size();)
      rows[i] = {scans[i].row, stats_of(scans[i].copy, scans[i].hash).value_or(StatsRow{})};
  });
  return rows;
}

}  // namespace nanquest
