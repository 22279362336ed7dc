/// machine: executes the ops of one run, one after the other, on its own slots.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>
#include <vector>

#include "replay/trace/call_values.h"
#include "replay/trace/plan.h"
#include "replay/trace/recorded_results.h"
#include "replay/trace/replayer.h"
#include "replay/trace/slots.h"

namespace nanquest::trace {

class Machine {
 public:
  /// `doc`, `plan` and `edit` must outlive the machine. Needs a RunScope around its calls.
  Machine(const SnapshotDoc& doc, const TracePlan& plan, const DataSource& source, Precision precision,
          const TraceEdit& edit, c10::Device device = c10::Device(c10::kCPU));
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  /// Continues from existing slots (SlotStore::fork), which were filled as recorded.
  Machine(const SnapshotDoc& doc, const TracePlan& plan, const DataSource& source, Precision precision,
          const TraceEdit& edit, SlotStore slots);

  /// Runs the op on this machine's slots. Never throws.
  StepOutcome step(OpId op);
  /// Runs the op on copies of what `inputs` holds now (call before the op runs there); stores nothing. Never
  /// throws.
  StepOutcome step_isolated(OpId op, InputSlots& inputs);
  /// Frees what is not needed after the op.
  void finish(OpId op);

  /// The op's arguments as they are in the slots now, in its own precision: views of the slots' memory.
  /// Throws if one is missing.
  std::vector<c10::IValue> arguments(OpId op);
  /// What the op returned, as it is in the slots now (undefined tensors if there is nothing).
  std::vector<at::Tensor> outputs(OpId op);
  /// One tensor per row of the op's `written` range.
  std::vector<at::Tensor> written(OpId op);

  SlotStore& slots() { return slots_; }
  Precision precision_of(OpId op) const { return precision_[op]; }

 private:
  const OpPlan& plan_of(OpId op) const { return plan_.ops[op]; }
  void run_call(OpId op, Precision p, Call& call);
  void execute(OpId op, Precision p, Call& call);
  void fill_unwritten(OpId op);
  void edit_outputs(OpId op);
  std::vector<at::Tensor> given_to_stand_in(OpId op);
  void put_stand_in(OpId op, const std::vector<at::Tensor>& given);
  std::vector<at::Tensor> own_written(OpId op);
  void substitute(OpId op, StepOutcome& out, bool isolated);
  void set_generator(OpId op) const;
  bool touches_mixed(const OpPlan& op) const;
  bool already_described(OpId op, bool isolated) const;
  /// The op ran on a device and can't be computed here: it takes the recorded results.
  bool belongs_elsewhere(OpId op) const;
  /// Computes what only a device has a kernel for, for ops that this run's change reaches or whose results
  /// are not recorded; false if that is not possible.
  bool compute_here(OpId id, Precision p, InputSlots& inputs, bool isolated, StepOutcome& out);
  /// Runs an op of a device in fp32 and rounds its results, because the CPU's kernels support fewer mixtures
  /// of formats.
  bool run_rounded(OpId id, InputSlots& inputs, bool isolated, StepOutcome& out);
  /// The recorded outputs of an op that exists here and failed.
  void take_recorded(OpId id, bool isolated, StepOutcome& out);
  void take(const OpPlan& op, Call& call, bool isolated, StepOutcome& out);
  StepOutcome step_in(OpId op, InputSlots& inputs, bool isolated);
  std::vector<at::Tensor> views(const std::vector<TensorId>& rows);

  const SnapshotDoc& doc_;
  const TracePlan& plan_;
  DataSource source_;
  RecordedResults recorded_;
  const TraceEdit& edit_;
  PerRow<OpRow, Precision> precision_;
  OpId first_changed_;  ///< from here on values may differ from the recorded ones
  SlotStore slots_;
  CallValues values_{slots_};
};

}  // namespace nanquest::trace
