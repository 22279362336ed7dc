/// plan: what a doc's ops and slots mean, computed once and shared by every run.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/trace/arguments.h"

namespace nanquest::trace {

/// One op, ready to be executed.
struct OpPlan {
  std::optional<c10::OperatorHandle> handle;  ///< empty: `problem` says why, or there is nothing to execute
  std::string problem;                        ///< why it can't be executed, "" if it can
  std::vector<ArgPlan> args;
  std::vector<TensorId> outputs;  ///< checked, none for undefined ones
  std::vector<TensorId> written;  ///< checked, none for what should not be looked at
  bool sound = false;             ///< outputs and written are what the file says
  bool noise = false;             ///< draws random numbers
  bool on_device = false;         ///< its results were on a device; random numbers drawn there can't be drawn
                                  ///< again on a CPU
  bool factory = false;           ///< takes no tensor
  bool view_only = false;         ///< computes nothing: the rows of its outputs say everything
  std::vector<SlotId> release;    ///< slots that are not read after this op
  std::vector<TensorId> settles;  ///< loss and gradients that are not written after this op
};

/// One storage over the whole trace.
struct SlotPlan {
  at::ScalarType type = at::kByte;  ///< the one dtype it is used as; of the parts if `paired`
  bool mixed = false;               ///< used as several dtypes: its bytes stay as recorded
  bool paired = false;   ///< used as complex numbers and as their parts, of one format: both grow together
  bool changes = false;  ///< some op or host write writes it
  bool scratch = false;  ///< a kernel's working memory, as large as this version's kernel wants it
};

struct TracePlan {
  TraceGraph graph;  ///< of the doc, by what the schemas say is read
  PerRow<OpRow, OpPlan> ops;
  PerRow<Slot, SlotPlan> slots;
  /// What new memory that nobody has written is filled with in every run; empty: with what lies there.
  std::optional<double> unwritten = {};
};

/// Plans the whole doc, which must outlive the plan. Never fails: problems of an op are in its `problem`.
TracePlan make_plan(const SnapshotDoc& doc);

}  // namespace nanquest::trace
