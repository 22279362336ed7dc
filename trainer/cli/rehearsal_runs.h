/// The runs of a rehearsal: each trained on from the same state, in memory only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "replay/verdict/rehearsal.h"
#include "trainer/cli/rehearsal_origin.h"
#include "trainer/loop/trainer.h"

namespace nanquest::trainer {

struct RehearsalPlan {
  std::vector<std::string> changes;  ///< "lr=*0.5", "lr=0.1,grad-clip=0.5": each a run of its own
  std::int64_t steps = 64;           ///< steps after the step in question
  std::int64_t placebos = 8;
  std::string data;  ///< where the run's data are now; "" = where they were
};

/// Callbacks of the runs.
struct RehearsalListener {
  std::function<void(const std::string&)> say = {};
  std::function<void(Trainer*)> trains = {};  ///< before a run, and with null after it
  std::function<bool()> stopped = {};         ///< true: give up
};

/// Runs unchanged, with placebos, with each change, and judges. An invalid change is refused before anything
/// runs: `usage`, naming it. If stopped: what there is, without a judgement.
Result<Rehearsal> rehearse(const Origin& origin, const RehearsalPlan& plan,
                           const RehearsalListener& listener);

}  // namespace nanquest::trainer
