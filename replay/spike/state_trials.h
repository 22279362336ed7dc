/// state_trials: are weights or the optimizer's state why the step is out of its range? Tried on the steps of
/// the file's tape: the step's batch after fewer updates, or after updates that were changed.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "replay/rewind/rewind.h"
#include "replay/spike/trials.h"

namespace nanquest {

struct StateResult {
  std::string not_tried;   ///< why nothing could be tried, "" if it was
  std::int64_t steps = 0;  ///< of the tape
  /// The step's batch without the updates of the last `left_out` steps: the fewest with which the step is in
  /// its range, otherwise the most that were left out.
  Standing earlier = Standing::unknown;
  std::int64_t left_out = 0;
  Figures without = {};
  bool control_failed = false;  ///< leaving out as many updates before those left the step out of its range
  Figures control = {};
  std::optional<std::int64_t> undone =
      {};                ///< undoing what this step wrote outside its update brings it back
  bool moments = false;  ///< so does an optimizer's state that is zero when the tape begins
  std::optional<double> rate =
      {};                       ///< so do updates with at most this rate, the usual one of the steps before
  double rate_before = 0;       ///< of the largest update that was reduced
  std::string slower = {};      ///< so does this change of all updates of the tape; "" if none does
  bool placebo_helped = false;  ///< a change of a weight's last bit brings it back as well
  Standing other_batch = Standing::unknown;  ///< the step on the batch of an earlier step, not the last
  Figures on_other_batch = {};
};

/// Tries them. `other_batch`: also the step on the batch of an earlier step.
StateResult try_state(const Rewind& rewind, c10::Device device, bool other_batch,
                      const std::function<bool()>& has_time, SpikeTrials& trials);

}  // namespace nanquest
