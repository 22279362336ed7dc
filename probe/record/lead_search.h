/// LeadSearch: which ops of the step before made bad memory that a step reads (lead.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "probe/record/lead.h"
#include "probe/trace/graph.h"

namespace nanquest::record {

/// The recording's data at this path; null if there are none.
const at::Tensor* data_at(const Recording& recording, const std::string& path);

class LeadSearch {
 public:
  /// Both must outlive it.
  LeadSearch(const Recording& step, const LeadSource& source)
      : step_(step), source_(source), graph_(source.before.doc) {}

  /// The step before.
  const TraceGraph& graph() const { return graph_; }

  /// Memory of the step before that is bad when the present one first reads it, and that was written in
  /// between.
  std::vector<SlotId> bad() const;
  /// The ops that made what lies in `slot`, or brought it there from a weight, buffer or moment that was bad;
  /// empty if other memory was bad before, or if a constant of the program made it so. Nothing if that is not
  /// known.
  std::optional<std::set<OpId>> ops_behind(SlotId slot) const;

  /// The step before did not know this memory until its update was over.
  bool is_made_between(SlotId slot) const;
  bool written_between(SlotId slot) const;
  /// What lay in it when the update was over; null if that is not known.
  const at::Tensor* first_values(SlotId slot) const;

 private:
  bool is_state(SlotId slot) const;
  bool was_written_before(SlotId slot) const;
  bool is_as_now(SlotId slot) const;
  bool is_meant(OpId op) const;
  bool can_run(OpId op) const;
  std::vector<SlotId> slots_of(OpId op) const;

  const Recording& step_;
  const LeadSource& source_;
  TraceGraph graph_;
};

}  // namespace nanquest::record
