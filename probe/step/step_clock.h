/// StepClock: how long steps take, from their beginning to the end of their update. On a device by events on
/// its stream: nothing waits for them, so a step's time is there some steps later. Elsewhere, and if the
/// device has no such events, by the host's clock.
///
///     clock.begins(device, /*watched=*/false);
///     … forward, backward, update …
///     clock.ends();
///     for (const StepClock::Took& each : clock.taken()) …
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <chrono>
#include <deque>
#include <optional>
#include <vector>

namespace nanquest {

/// One thread. Never throws.
class StepClock {
 public:
  struct Took {
    double seconds = 0;
    bool watched = false;
  };

  /// A step begins. The one before it counts if it has ended.
  void begins(c10::Device device, bool watched);
  /// The running step has its update. Several may follow each other in a step: the last one counts.
  void ends();
  /// The running step does not count: it was given up, or did something else.
  void drops() { running_.reset(); }
  /// Another step begins, which is not measured. The one before it counts if it has ended.
  void rests();
  /// Times of steps that are over, each once, as far as devices have come.
  std::vector<Took> taken();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Mark {
    Time host;
    std::optional<c10::Event> device;
  };
  struct Step {
    c10::Device device;
    bool watched;
    Mark begin;
    std::optional<Mark> end;
  };
  Mark mark(c10::Device device);

  std::optional<Step> running_;
  std::deque<Step> over_;
  bool has_events_ = true;
};

}  // namespace nanquest
