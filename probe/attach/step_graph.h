/// StepGraph: a recorded step as a graph, in which the program's tensors are found by their memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "probe/attach/rounds.h"
#include "probe/trace/flow.h"
#include "probe/trace/graph.h"

namespace nanquest::attach {

class StepGraph {
 public:
  /// The step that `rounds` records, or has just recorded (Rounds::now). All must outlive it.
  StepGraph(Rounds& rounds, const Names& names, const NamedList& batch, const RoundResults& results);
  /// `doc`: the tables of `step`. All must outlive it.
  StepGraph(const SnapshotDoc& doc, const record::Step& step, const Names& names)
      : step_(step), names_(names), graph_(doc) {}
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  const TraceGraph& graph() const { return graph_; }
  const record::Step& step() const { return step_; }
  OpId first() const { return graph_.ops().front(); }

  /// The slot of this memory; none if the step did not touch it.
  SlotId slot(const c10::StorageImpl* memory) const;
  /// The same of a tensor's memory; none if it is not plain (is_plain).
  SlotId slot(const at::Tensor& tensor) const;
  /// Slots of those tensors that the step touched.
  std::vector<SlotId> slots(const NamedList& list) const;
  /// The same of all state that has a name.
  std::vector<SlotId> state() const;
  /// Whether loss, gradients, or weights and states that the step wrote are among what is reached from these
  /// slots by the whole step.
  bool harms(const std::vector<SlotId>& from) const;

 private:
  const record::Step& step_;
  const Names& names_;
  StepNames named_;
  std::optional<StepTables> tables_;  ///< those that `graph_` is made of, if they were made here
  TraceGraph graph_;
};

}  // namespace nanquest::attach
