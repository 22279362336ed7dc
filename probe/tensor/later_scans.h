/// later_scans: statistics of tensors on a device, without waiting for it.
///
/// The back end of the device starts to scan each tensor in the order of its stream. When the results are
/// needed, the host waits for those streams once and reads them. Counts and hashes are the CPU's, bit for
/// bit.
///
///     LaterScans later;
///     if (!later.take(tensor, /*hash=*/true, 7)) …                   // a CPU, or no pinned memory: stats_of
///     for (const auto& [row, stats] : later.read()) …                // row 7
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "probe/tensor/back_end.h"

namespace nanquest {

/// Not thread-safe. The destructor waits for copies that were not read: the device writes to their memory.
class LaterScans {
 public:
  LaterScans() = default;
  LaterScans(const LaterScans&) = delete;
  LaterScans& operator=(const LaterScans&) = delete;
  ~LaterScans();

  /// Starts to scan a tensor as the work that is now on its stream will leave it. `row`: the caller's number
  /// for it. False if it is not plain memory on a device with pinned memory; it is not scanned then. Throws
  /// c10::Error if the device refuses.
  bool take(const at::Tensor& tensor, bool hash, std::int32_t row);

  bool empty() const { return scans_.empty(); }
  /// Whether so much is pending that it should be read.
  bool full() const { return bytes_ > kMostBytes; }
  /// Waits for all started scans, returns them and forgets them. Throws c10::Error if the device failed.
  std::vector<std::pair<std::int32_t, StatsRow>> read();

 private:
  void wait();
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  struct Scan {
    std::unique_ptr<PendingStats> pending;
    std::int32_t row;
  };
  std::vector<Scan> scans_;
  std::vector<c10::Stream> streams_;
  std::size_t bytes_ = 0;
};

}  // namespace nanquest
