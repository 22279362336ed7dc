#include "probe/attach/learning.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "probe/attach/session.h"
#include "probe/observe/observer_pause.h"
#include "probe/record/tables.h"
#include "probe/step/tensor_pass.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/flow.h"

namespace nanquest::attach {
namespace {

/// Operators whose derivative is exactly 0 where their result is saturated or cut off.
bool is_switch(std::string_view op) {
  static constexpr std::array kNames{"aten::threshold_backward",   "aten::hardtanh_backward",
                                     "aten::hardsigmoid_backward", "aten::hardswish_backward",
                                     "aten::sigmoid_backward",     "aten::tanh_backward"};
  return std::find(kNames.begin(), kNames.end(), op) != kNames.end();
}

bool all_zero(const StatsRow* stats) {
  return stats && stats->count > 0 && stats->zero == stats->count;
}

bool has_values(const StatsRow* stats) {
  return stats && stats->amax > 0 && stats->non_finite() == 0;
}

/// Whether the op got values other than 0 and wrote zeros only, for a reason that its name or its format
/// shows: a switch that is off, or values that its format can't hold.
bool makes_zeros(const TraceGraph& graph, OpId op) {
  const OpRow& row = graph.op(op);
  const auto reads = graph.reads(op);
  const auto written = graph.written(op);
  if (row.phase != Phase::backward || reads.empty() || written.empty()) return false;
  if (!std::all_of(written.begin(), written.end(), [&](TensorId each) {
        return each && dtype_is_float(graph.tensor(each).dtype) && all_zero(graph.stats(each));
      }))
    return false;
  if (is_switch(row.name)) return has_values(graph.stats(reads.front()));
  return row.name == "aten::_to_copy" && graph.tensor(written.front()).dtype == DType::float16 &&
         has_values(graph.stats(reads.front()));
}

}  // namespace

std::vector<double> largest(const std::vector<at::Tensor>& tensors) {
  const ObserverPause pause;
  TensorPass pass;
  pass.begin();
  for (const at::Tensor& tensor : tensors) pass.add(tensor);
  pass.run(1);
  std::vector<double> found(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) found[i] = pass.stats(i).amax;
  return found;
}

void aside(bool begins) {
  thread_local std::optional<ObserverPause> pause;
  if (begins)
    pause.emplace();
  else
    pause.reset();
}

void AttachSession::with_graph(const std::function<void(const StepGraph& step, Rounds& rounds)>& look) {
  safely("a look at the recorded step", [&] {
    if (on_record()) look(StepGraph(*rounds_, tensors_.names(), batch_, {}), *rounds_);
  });
}

std::vector<std::int64_t> feed_loss(AttachSession& session, const std::vector<at::Tensor>& weights) {
  std::vector<std::int64_t> found(weights.size(), 0);
  const std::vector<at::Tensor>& losses = session.losses().all();
  session.with_graph([&](const StepGraph& step, Rounds&) {
    const TraceGraph& graph = step.graph();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const SlotId slot = step.slot(weights[i]);
      if (!slot) continue;
      const auto& reads = graph.reads(slot);
      const bool differentiated = std::any_of(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
        const OpRow& op = graph.op(read.op);
        return op.phase == Phase::forward && op.sequence >= 0 && !computes_nothing(op);
      });
      if (!differentiated) continue;
      const SlotSet reached = reached_in_floats(graph, {slot}, graph.ops().front());
      found[i] = std::any_of(losses.begin(), losses.end(), [&](const at::Tensor& loss) {
        const SlotId there = step.slot(loss);
        return there && reached[there];
      });
    }
  });
  return found;
}

std::vector<std::int64_t> carried_over(AttachSession& session, const std::vector<at::Tensor>& gradients) {
  std::vector<std::int64_t> found(gradients.size(), 0);
  session.with_graph([&](const StepGraph& step, Rounds& rounds) {
    const TraceGraph& graph = step.graph();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const SlotId slot = step.slot(gradients[i]);
      if (!slot) continue;
      const auto& reads = graph.reads(slot);
      const auto old = std::find_if(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
        return !computes_nothing(graph.op(read.op)) && !graph.producer(read.row, read.op);
      });
      if (old == reads.end() || graph.op(old->op).phase != Phase::backward) continue;
      const at::Tensor first = rounds.first_value(gradients[i]);
      found[i] = first.defined() && is_plain(first) && largest({first}).front() > 0;
    }
  });
  return found;
}

std::string zeros_made(AttachSession& session, const std::vector<at::Tensor>& gradients) {
  if (!session.watches()) return "";
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < gradients.size(); ++i) all.push_back(nlohmann::json::object());
  session.with_graph([&](const StepGraph& step, Rounds&) {
    const TraceGraph& graph = step.graph();
    std::vector<SlotId> slots;
    slots.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) slots.push_back(step.slot(gradient));
    for (const OpId op : graph.ops()) {
      if (!makes_zeros(graph, op)) continue;
      std::vector<SlotId> from;
      for (const TensorId row : graph.written(op))
        if (const SlotId slot = graph.slot(row)) from.push_back(slot);
      const SlotSet reached = reached_by(graph, from, OpId{op.row() + 1});
      for (std::size_t i = 0; i < slots.size(); ++i)
        if (slots[i] && reached[slots[i]] && all[i].empty())
          all[i] = {{"op", graph.op(op).name},
                    {"module", std::string(graph.module_of(op))},
                    {"switch", is_switch(graph.op(op).name)}};
    }
  });
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace nanquest::attach
