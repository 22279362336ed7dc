/// WatchedSteps: which steps are watched, and what the probe costs.
///
///     steps.step_begins(17);
///     const bool watched = steps.watches(17, /*last_incident=*/3);
///     steps.record_begins(17, watched, devices);
///     … forward, backward, update …
///     if (const auto costs = steps.update_made(17, /*reported=*/false)) …
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "probe/attach/options.h"
#include "probe/step/own_time.h"
#include "probe/step/step_clock.h"
#include "probe/step/watch_spacing.h"

namespace nanquest::attach {

/// One thread, except `own_time` and `inside`. Never throws.
class WatchedSteps {
 public:
  /// The options must live as long.
  explicit WatchedSteps(const AttachOptions& options) : options_(options), spacing_(options.watch_percent) {}

  /// Whether this step is one of those that are saved for an audit.
  bool audits(std::int64_t step) const {
    return options_.audit > 0 && step > 0 && step % options_.audit == 0;
  }
  /// Whether a step is watched, whatever runs in it.
  bool watches(std::int64_t step, std::int64_t last_incident) const;

  void step_begins(std::int64_t step) { own_.begins(step); }
  /// Its record begins: measures the step, if it is one of those, and decides how often steps are watched.
  void record_begins(std::int64_t step, bool watched, const std::vector<at::Device>& devices);
  /// Shares of a step's time: inside the probe in steps that are not watched; and what watched steps take
  /// longer. NaN: not known.
  struct Costs {
    double own, watching;
  };
  /// The update was made. `reported`: an incident was written, which takes long and is no cost of watching.
  std::optional<Costs> update_made(std::int64_t step, bool reported);

  /// For ranks that train together (AttachSession::watch_wanted, watch_from).
  int wanted();
  void from(std::int64_t now, std::int64_t first, std::int64_t every);

  OwnTime& own_time() { return own_; }
  /// For a function of the probe that runs at every op: nothing, unless this step is measured.
  std::optional<OwnTime::Inside> inside() {
    if (!own_.measuring()) return std::nullopt;
    return std::optional<OwnTime::Inside>(std::in_place, own_);
  }

 private:
  /// Whether it is measured how often steps are watched.
  bool spaces_by_cost() const;
  void take_times();

  const AttachOptions& options_;
  OwnTime own_;
  StepClock clock_;
  WatchSpacing spacing_;
};

}  // namespace nanquest::attach
