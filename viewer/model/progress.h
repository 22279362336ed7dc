/// Progress: how far a reading is, told from the thread that reads to the one that draws, and the wish to end
/// it told back.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nanquest::viewer {

class Progress {
 public:
  /// Announces work, in bytes or what takes as long.
  void expect(std::uint64_t work) { expected_ += work; }
  /// So much of it is done.
  void advance(std::uint64_t work) { done_ += work; }
  /// 0 … 1; 0 as long as nothing is announced.
  double share() const {
    const std::uint64_t expected = expected_;
    return expected == 0 ? 0
                         : static_cast<double>(std::min<std::uint64_t>(done_, expected)) /
                               static_cast<double>(expected);
  }
  /// Asks the reading to end as soon as it can; what it gives then is of no use.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  std::atomic<std::uint64_t> expected_{0}, done_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace nanquest::viewer
