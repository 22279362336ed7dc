/// OwnTime: the share of a step's time that passes inside the probe's own functions. One step in `kEvery` is
/// measured, from its beginning to the end of its update; in the others nothing reads the clock.
///
///     time.begins(step);                       // a step begins
///     { const OwnTime::Inside inside(time); … }  // in each of the probe's functions; only the outermost
///     counts time.ends();                             // its update has been made time.share(); // of the
///     last step that was measured
///
/// What PyTorch does to call the probe's functions, and what Python does in the package, is not in it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace nanquest {

/// For the thread that trains, and threads that it waits for. No torch. Never throws.
class OwnTime {
 public:
  static constexpr std::int64_t kEvery = 16, kFirst = 4;  ///< the first steps pay for caches and memory

  /// True in a step that is measured.
  bool measuring() const { return measuring_.load(std::memory_order_relaxed); }
  /// A step begins; one that was measured and has not ended is dropped.
  void begins(std::int64_t step);
  /// The running step has its update. Several may follow each other in a step: the last one counts.
  void ends();
  /// The running step does not count: writing an incident's file takes long, and happens once.
  void drops() { measuring_.store(false, std::memory_order_relaxed); }
  /// NaN before the first measurement.
  double share() const { return share_; }

  class Inside {
   public:
    explicit Inside(OwnTime& time);
    ~Inside();
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    friend class OwnTime;
    OwnTime& time_;
    bool outermost_;
    std::chrono::steady_clock::time_point since_{};  ///< zero: not measured
  };

 private:
  using Clock = std::chrono::steady_clock;
  static thread_local Inside* open_;  ///< the outermost one of this thread

  std::atomic<bool> measuring_ = false;
  Clock::time_point began_;
  std::atomic<Clock::rep> inside_ = 0;
  double share_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace nanquest
