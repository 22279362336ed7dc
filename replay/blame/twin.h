/// TwinRun: the step once more, on the batch of the last healthy step (probe/record/twin.h), with its own
/// weights, states and numbers. What an op makes there it makes in health.
///
///     TwinRun twin(lab, recorded);
///     if (twin.health() == TwinRun::Health::well) …      // it is what this batch does to these weights
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
    unknown,  ///< there is no twin, no time for it, or its run does not reach as far as the harm
    well,     ///< none of the harm
    harmed,   ///< the harm is there as well: it is not this batch
  };

  /// `recorded` is the run as recorded, with statistics; used only here. `lab` outlives this.
  TwinRun(Lab& lab, const RunResult& recorded);

  bool there() const { return lab_.replayer().doc().twin.step >= 0; }
  /// Number of the healthy step.
  std::int64_t step() const { return lab_.replayer().doc().twin.step; }
  /// The first op that the two steps don't have in common: nothing is known of it and of what follows.
  OpId end() const { return OpId{lab_.replayer().doc().twin.ops}; }

  Health health();
  /// The run, made when it is asked for first; null where there is none, if an op failed in it, or if one can
  /// only be given its recorded values.
  const RunResult* run();
  /// True if the run is well and the suspect made there, in each of its outputs, at least as many NaN and as
  /// many infinities of each sign; or if it is an outside value that held as many in health. What lives on
  /// from step to step tells nothing.
  bool has_it_in_health(const Suspect& suspect);

  /// Adds to `edit` that everything comes as the healthy step had it, but for the outside value in `except`.
  /// False if something of the file can't be read.
  bool put(TraceEdit& edit, SlotId except = {}) const;

  /// What the twin has in a slot's place, as a 1-D tensor of the slot's type; nothing if both steps read the
  /// same bytes there.
  std::optional<at::Tensor> values_of(SlotId slot) const;

  /// What the twin's batch holds where the step reads the row of an outside value; nothing if both steps read
  /// the same bytes there.
  std::optional<StatsRow> stats_of_outside(TensorId row) const;

 private:
  void make_run();
  bool reaches_harm() const;
  bool outside_in_health(TensorId row) const;

  Lab& lab_;
  Harm harm_;
  int failed_ = 0;
  bool harm_in_results_ = false;  ///< loss or gradients show it
  bool made_ = false;
  std::optional<RunResult> run_;
};

}  // namespace nanquest
