/// Dynamic loss scaling on the host: works on any device, knows a floor, and remembers what it did.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

struct ScalerOptions {
  double initial = 65536.0;
  double growth = 2.0, backoff = 0.5;
  std::int64_t growth_interval = 2000;  ///< good steps in a row before growing
  int hysteresis = 1;                   ///< overflows in a row that it takes before the scale goes down
  double floor = 1.0;                   ///< never below: at 0, 1/scale would be infinite and everything NaN
  double ceiling = 16777216.0;          ///< never above 2^24
};

/// Declares the loss scale's settings, in the group Precision.
void declare(SettingList& list, ScalerOptions& options);
/// Names the first setting that makes no sense.
Status check(const ScalerOptions& options);

/// One change of the scale.
struct ScaleChange {
  std::int64_t step = 0;
  double from = 0, to = 0;
};

/// The scale is separate from the gate: it never decides whether a step is good.
class GradScaler {
 public:
  /// What a checkpoint must hold to go on exactly.
  struct State {
    double scale = 0;
    std::int64_t good_steps = 0, overflows = 0;
    int patience = 0;
    bool enabled = false;
  };

  /// `enabled` false: scale is 1 for ever.
  explicit GradScaler(const ScalerOptions& options = {}, bool enabled = true);

  double scale() const { return enabled_ ? scale_ : 1.0; }
  bool enabled() const { return enabled_; }
  /// Switches scaling off for the rest of the run (fp32 fallback).
  void disable() { enabled_ = false; }

  /// A step was applied. Grows after `growth_interval` of these in a row.
  void good_step(std::int64_t step);
  /// Gradients left the range at this scale. Returns false if the scale could not go down: it is at its
  /// floor.
  bool overflow(std::int64_t step);

  /// The overflows since `before` were not the scale's doing (they went on at its floor): it is what it was
  /// then. `before` is a `state()` of this run.
  void take_back(std::int64_t step, const State& before);

  const std::vector<ScaleChange>& history() const { return history_; }
  /// Puts back what a checkpoint remembers of the run before it.
  void set_history(std::vector<ScaleChange> history) { history_ = std::move(history); }
  std::int64_t overflows() const { return overflows_; }

  State state() const { return {scale_, good_steps_, overflows_, patience_, enabled_}; }
  void restore(const State& state);

 private:
  void change(std::int64_t step, double to);

  ScalerOptions options_;
  double scale_;
  std::int64_t good_steps_ = 0, overflows_ = 0;
  int patience_;  ///< overflows left until the scale goes down
  bool enabled_;
  std::vector<ScaleChange> history_;
};

}  // namespace nanquest::trainer
