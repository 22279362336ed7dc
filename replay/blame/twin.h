/// TwinRun: the step once more, on the batch of the last healthy step (probe/record/twin.h), with its own
/// weights, states and numbers. What an op makes there, it makes in healthy steps too.
///
///     TwinRun twin(lab, recorded);
///     if (twin.health() == TwinRun::Health::well) …      // the bad batch is needed for the harm
///     if (const RunResult* run = twin.run()) run->ops[op].written[0].amax
#pragma once

#include <cstdint>
#include <optional>

#include "replay/blame/harm.h"
#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

class TwinRun {
 public:
  enum class Health : std::uint8_t {
    unknown,  ///< there is no twin, no time for it, or its run does not reach the harm
    well,     ///< the harm does not occur
    harmed,   ///< the harm occurs too: it does not depend on this batch
  };

  /// `recorded` is the run as recorded, with statistics; used only here. `lab` must outlive this.
  TwinRun(Lab& lab, const RunResult& recorded);

  bool there() const { return lab_.replayer().doc().twin.step >= 0; }
  /// Number of the healthy step.
  std::int64_t step() const { return lab_.replayer().doc().twin.step; }
  /// The first op that the two steps don't have in common: nothing is known of it and of later ops.
  OpId end() const { return OpId{lab_.replayer().doc().twin.ops}; }

  Health health();
  /// The run, made on the first request; null if there is none, if an op failed in it, or if one could only
  /// be given its recorded values.
  const RunResult* run();
  /// True if the twin's run has no harm and the suspect made in it, in each of its outputs, at least as many
  /// NaN and as many infinities of each sign; or if it is an outside value that held as many in the healthy
  /// step. Values that are kept from step to step tell nothing.
  bool has_it_in_health(const Suspect& suspect);

  /// Adds to `edit` the healthy step's values for everything from outside except `except`. False if something
  /// of the file can't be read.
  bool put(TraceEdit& edit, SlotId except = {}) const;

  /// The twin's value in a slot's place, as a 1-D tensor of the slot's type; nothing if both steps read the
  /// same bytes there.
  std::optional<at::Tensor> values_of(SlotId slot) const;

  /// The twin's value where the step reads the row of an outside value; nothing if both steps read the same
  /// bytes there.
  std::optional<StatsRow> stats_of_outside(TensorId row) const;

 private:
  void make_run();
  bool reaches_harm() const;
  bool outside_in_health(TensorId row) const;

  Lab& lab_;
  Harm harm_;
  int failed_ = 0;
  bool harm_in_results_ = false;  ///< loss or gradients show the harm
  bool made_ = false;
  std::optional<RunResult> run_;
};

}  // namespace nanquest
