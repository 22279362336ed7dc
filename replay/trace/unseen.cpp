#include "replay/trace/unseen.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "probe/observe/op_traits.h"
#include "probe/trace/op_facts.h"

namespace nanquest {
namespace {

/// True if the row can hold NaN or Inf.
bool holds_numbers(const TensorRow& row) {
  const bool empty = std::find(row.sizes.begin(), row.sizes.end(), 0) != row.sizes.end();
  return !empty && dtype_has_nan(row.dtype) && !(row.flags & kTensorUndefined);
}

bool is_opaque(const TensorRow& row) {
  return (row.flags & kTensorOpaque) != 0;
}

class Search {
 public:
  Search(const TraceGraph& graph, const std::function<const RunResult&()>& as_recorded)
      : graph_(graph), as_recorded_(as_recorded) {}

  bool unseen(OpId id) {
    const OpRow& op = graph_.op(id);
    if (op.flags & (kOpUninitialised | kOpFailed)) return false;
    return ((op.flags & kOpOpaque) && made_opaque(id)) || wrote_unseen(id);
  }

  /// A loss or a gradient.
  bool unseen(TensorId row) const {
    const TensorRow* tensor = find_row(graph_.doc(), row);
    return tensor && holds_numbers(*tensor) && (is_opaque(*tensor) || !graph_.stats(row));
  }

 private:
  /// It returned, or wrote in place, memory that is not plain. A view of such memory made nothing.
  bool made_opaque(OpId id) const {
    const OpRow& op = graph_.op(id);
    const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
    const OpTraits* traits = handle ? &traits_of(*handle) : nullptr;
    const bool views = traits && !traits->returns.empty() &&
                       std::all_of(traits->returns.begin(), traits->returns.end(),
                                   [](ReturnKind kind) { return kind == ReturnKind::view; });
    const auto opaque_numbers = [&](TensorId row) {
      return is_opaque(graph_.tensor(row)) && holds_numbers(graph_.tensor(row));
    };
    for (const TensorId row : graph_.outputs(id))
      if (!views && opaque_numbers(row)) return true;
    const auto written = [&](std::int32_t position) {
      const auto at = static_cast<std::size_t>(position);
      return !traits || (at < traits->argument_written.size() && traits->argument_written[at]);
    };
    const auto arguments = graph_.arguments(id);
    return std::any_of(arguments.begin(), arguments.end(), [&](const TraceGraph::Argument& argument) {
      return written(argument.position) && opaque_numbers(argument.row);
    });
  }

  /// It wrote plain memory without statistics, neither recorded nor in the run.
  bool wrote_unseen(OpId id) {
    const auto rows = graph_.written(id);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (!rows[k] || graph_.stats(rows[k]) || !holds_numbers(graph_.tensor(rows[k]))) continue;
      if (is_working_memory(id, rows[k])) continue;
      if (!run_) run_ = &as_recorded_();
      if (id.index() >= run_->ops.size()) return true;
      const std::vector<StatsRow>& seen = run_->ops[id.index()].written;
      if (k >= seen.size() || seen[k].count == 0) return true;
    }
    return false;
  }

  /// What it returned and should not be looked at.
  bool is_working_memory(OpId id, TensorId row) const {
    const OpRow& op = graph_.op(id);
    const std::int32_t output = row.row() - op.first_output;
    return output >= 0 && output < op.output_count && is_scratch(op.name, static_cast<std::size_t>(output));
  }

  const TraceGraph& graph_;
  const std::function<const RunResult&()>& as_recorded_;
  const RunResult* run_ = nullptr;
};

}  // namespace

UnseenValues find_unseen(const TraceGraph& graph, const std::function<const RunResult&()>& as_recorded) {
  UnseenValues found;
  Search search(graph, as_recorded);
  for (const OpId op : graph.ops())
    if (search.unseen(op)) found.ops.push_back(op);
  found.loss = search.unseen(TensorId{graph.doc().loss});
  for (const std::int32_t row : graph.doc().gradients) found.gradients += search.unseen(TensorId{row});
  return found;
}

}  // namespace nanquest
