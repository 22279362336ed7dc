#include "replay/case/repeatable.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <set>
#include <string>

#include "probe/trace/births.h"
#include "replay/case/case.h"

namespace nanquest {
namespace {

/// Ops that add up in the order in which threads arrive.
bool is_nondeterministic(const std::string& op) {
  static const std::set<std::string> names = {"index_add",
                                              "scatter_add",
                                              "scatter_reduce",
                                              "index_put",
                                              "put",
                                              "_index_put_impl",
                                              "embedding_dense_backward",
                                              "bincount",
                                              "histc",
                                              "index_reduce",
                                              "_embedding_bag_dense_backward",
                                              "cumsum"};
  return names.count(op) > 0;
}

}  // namespace

bool is_repeatable(const OpRow& op) {
  return follows_from_inputs(op.flags) && op.name.starts_with("aten::") &&
         !is_nondeterministic(plain_name(op));
}

bool reads_shared_memory(const TraceGraph& graph, OpId op) {
  const auto arguments = graph.arguments(op);
  return std::any_of(arguments.begin(), arguments.end(), [&](const TraceGraph::Argument& a) {
    const SlotId slot = graph.slot(a.row);
    if (!slot || graph.producer(a.row, op)) return false;
    const SlotOrigin origin = get(graph.doc(), slot).origin;
    return origin == SlotOrigin::input || origin == SlotOrigin::external;
  });
}

RunResult computed_otherwise(const std::function<RunResult(const RunOptions&)>& run, OpId op, bool threads) {
  at::Context& context = at::globalContext();
  const bool enabled = context.userEnabledMkldnn();
  RunOptions options;
  options.hash = true;
  options.stop_after = op.row();
  options.edit.op_edit[op.row()] = [&](std::vector<c10::IValue>&) {
    if (threads)
      at::set_num_threads(at::get_num_threads() == 1 ? 2 : 1);
    else
      context.setUserEnabledMkldnn(false);
    return false;
  };
  RunResult result = run(options);
  context.setUserEnabledMkldnn(enabled);
  return result;
}

Likeness compared_with_recorded(const TraceGraph& graph, OpId op, const OpOutcome& outcome) {
  const auto rows = graph.written(op);
  Likeness result = Likeness::unknown;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StatsRow* recorded = rows[i] ? graph.stats(rows[i]) : nullptr;
    if (!recorded || !recorded->has_hash || i >= outcome.written.size() || !outcome.written[i].has_hash)
      continue;
    if (recorded->hash != outcome.written[i].hash) return Likeness::other;
    result = Likeness::equal;
  }
  return result;
}

}  // namespace nanquest
