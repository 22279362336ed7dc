/// LivingMemory: memory that outlives a step, wherever the program keeps it: what of it a step has spoiled,
/// whose it is, and whether what the last incident left there does harm. What has no name yet gets one when
/// it is found spoiled.
///
/// One thread: the one that trains.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "probe/attach/owner.h"
#include "probe/attach/program_tensors.h"
#include "probe/attach/step_graph.h"
#include "probe/step/gate.h"
#include "probe/step/state_check.h"

namespace nanquest::attach {

class LivingMemory {
 public:
  using Results = std::function<RoundResults()>;

  /// All must outlive it. `batch`: of the running step.
  LivingMemory(ProgramTensors& tensors, const GradientGate& gate, StateCheck& check, const NamedList& batch)
      : tensors_(tensors), gate_(gate), check_(check), batch_(batch) {}

  /// How to find out what of the program holds some memory; without it only what has a name is looked at.
  void find_owners_with(FindOwner find) { find_owner_ = std::move(find); }

  /// What the passes of the running step have spoiled, with StateCheck's words in the names. `left_out`: the
  /// step's update will not be made; then also memory without a name that carries an old value on, and gets
  /// into the step's results, weights or states, or belongs to a module. `results` is called only if there is
  /// such memory: it may wait for devices.
  NamedTensors spoiled_by_passes(Rounds& rounds, std::int64_t step, bool left_out, const Results& results);
  /// What ops from `first` on, after the update of a step, have spoiled: parts of modules, whoever trains
  /// them, copies and averages of the state. A copy of what is known to be bad is damage of the last
  /// incident, and none of these.
  NamedTensors spoiled_between(Rounds& rounds, std::int64_t step, std::size_t first);
  /// Whether what the last incident left behind gets into loss, gradients or weights of a step; true where
  /// that is not known. `step` gives the step if it is needed, null if it is not on record.
  bool damage_matters(const std::function<const StepGraph*()>& step) const;
  /// What was found damaged before the program used it has got its name by now: it is the same damage.
  void take_over_names();

 private:
  /// Of the state that has a name: what ops from `first` on wrote.
  NamedTensors written(Recorder& recorder, std::size_t first, bool weights_too) const;
  /// Other memory that they wrote and that is still there, but for gradients and the batch.
  std::vector<record::Survivor> strangers(Recorder& recorder, std::size_t first) const;
  NamedTensors strangers_spoiled_by_passes(Rounds& rounds, std::int64_t step, const Results& results);
  NamedTensors strangers_spoiled_between(Rounds& rounds, std::int64_t step, std::size_t first);
  bool asks_owners() const;
  Owner owner_of(const at::Tensor& memory);
  /// Gives it its owner's name, by which it is known from here on.
  std::string adopt(const Owner& owner, const at::Tensor& memory);

  ProgramTensors& tensors_;
  const GradientGate& gate_;
  StateCheck& check_;
  const NamedList& batch_;
  FindOwner find_owner_;
  int in_vain_ = 0;  ///< tensors whose owner was looked for, and that are nobody's state
};

}  // namespace nanquest::attach
