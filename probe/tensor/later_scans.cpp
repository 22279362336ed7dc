#include "probe/tensor/later_scans.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <atomic>

#include "probe/tensor/parallel.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// If the stream has been waited for (by the gate), earlier work on it is done as well.
bool has_run(const c10::impl::VirtualGuardImpl& device, const c10::Stream& stream) {
  try {
    return device.queryStream(stream);
  } catch (const std::exception&) {  // the device can't be queried, or it failed
    return false;
  }
}

}  // namespace

bool LaterScans::take(const at::Tensor& tensor, bool hash, std::int32_t row) {
  const auto type = is_plain(tensor) ? dtype_of(tensor.scalar_type()) : std::nullopt;
  if (!type) return false;
  auto pending = back_end_of(tensor.device().type()).begin(tensor, *type, hash);
  if (!pending) return false;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device());
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
  bytes_ += pending->bytes();
  scans_.push_back({std::move(pending), row});
  return true;
}

LaterScans::~LaterScans() {
  try {
    wait();
  } catch (
      const std::exception&) {  // the device failed, which the program will see: nothing is written any more
  }
}

void LaterScans::wait() {
  for (const c10::Stream& stream : std::exchange(streams_, {})) {
    const c10::impl::VirtualGuardImpl device(stream.device_type());
    if (!has_run(device, stream)) device.synchronizeStream(stream);
  }
}

std::vector<std::pair<std::int32_t, StatsRow>> LaterScans::read() {
  const std::vector<Scan> scans = std::exchange(scans_, {});
  bytes_ = 0;
  wait();
  std::vector<std::pair<std::int32_t, StatsRow>> rows(scans.size());
  std::atomic<std::size_t> next{0};
  parallel_ranges(threads_here(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i; (i = next++) < scans.size();) rows[i] = {scans[i].row, scans[i].pending->read()};
  });
  return rows;
}

}  // namespace nanquest
