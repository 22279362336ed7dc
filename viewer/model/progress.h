/// Progress: reports from the reading thread to the drawing thread how far a reading is, and in return the
/// request to stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace nanquest::viewer {

class Progress {
 public:
  /// Announces work, in bytes or a similar unit.
  void expect(std::uint64_t work) { expected_ += work; }
  /// Reports that much work as done.
  void advance(std::uint64_t work) { done_ += work; }
  /// 0 … 1; 0 as long as nothing is announced.
  double share() const {
    const std::uint64_t expected = expected_;
    return expected == 0 ? 0
                         : static_cast<double>(std::min<std::uint64_t>(done_, expected)) /
                               static_cast<double>(expected);
  }
  /// Asks the reading to end as soon as possible; its result is then invalid.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  std::atomic<std::uint64_t> expected_{0}, done_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace nanquest::viewer
