#include "replay/blame/first_look.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "replay/blame/neutral.h"

namespace nanquest {
namespace {

/// With more such ops none is tried.
constexpr int kMaxTried = 4;

using Written = std::optional<std::vector<at::Tensor>>;

/// Copies of the results of `op` when the suspect's bad values are `neutral`, or as they are.
Written given_by(Lab& lab, OpId op, const Suspect& suspect, std::optional<Neutral> neutral) {
  Written made;
  RunOptions options;
  options.scan = false;
  options.stop_after = op.row();
  if (neutral) neutralise(lab.graph(), suspect, *neutral, options.edit);
  options.on_op = [&](std::int32_t at, const std::vector<at::Tensor>& outputs) {
    if (at != op.row()) return;
    made.emplace();
    for (const at::Tensor& t : outputs)
      made->push_back(t.defined() && t.is_floating_point() ? t.to(at::kDouble, false, true) : at::Tensor());
  };
  return lab.run(options, /*seen_from=*/op.row()).failed == 0 ? std::move(made) : std::nullopt;
}

bool leaves_alone(Lab& lab, OpId op, const Suspect& suspect) {
  const Written as_it_is = given_by(lab, op, suspect, std::nullopt);
  const Written zero = given_by(lab, op, suspect, Neutral::zero),
                one = given_by(lab, op, suspect, Neutral::one);
  if (!as_it_is || !zero || !one || zero->size() != as_it_is->size() || one->size() != as_it_is->size())
    return false;
  bool seen = false;
  for (std::size_t i = 0; i < as_it_is->size(); ++i) {
    if (!(*as_it_is)[i].defined()) continue;
    const at::Tensor bad = at::logical_not(at::isfinite((*as_it_is)[i]));
    const auto is = [&](const at::Tensor& t, double value) {
      return at::logical_or(at::logical_not(bad), t == value).all().item<bool>();
    };
    const auto same = [&](const at::Tensor& t) {
      return at::logical_or(bad, t == (*as_it_is)[i]).all().item<bool>();
    };
    const at::Tensor &a = (*zero)[i], &b = (*one)[i];
    if (!is(a, 0) || !is(b, 1) || !same(a) || !same(b)) return false;
    seen = true;
  }
  return seen;
}

bool writes_slot(const TraceGraph& graph, OpId op, SlotId slot) {
  const auto written = graph.written(op);
  return std::any_of(written.begin(), written.end(),
                     [&](TensorId row) { return row && graph.slot(row) == slot; });
}

}  // namespace

OpId first_to_look(Lab& lab, const Suspect& suspect) {
  const TraceGraph& graph = lab.graph();
  const SlotId slot = suspect.row ? graph.slot(suspect.row) : SlotId{};
  if (!slot) return suspect.op;
  int tried = 0;
  for (const TraceGraph::Read& read : graph.reads(slot)) {
    const OpRow& reader = graph.op(read.op);
    if (read.op < suspect.op || computes_nothing(reader) || (reader.flags & kOpHostWrite)) continue;
    if (!graph.bad(read.row)) continue;
    if (!writes_slot(graph, read.op, slot) || ++tried > kMaxTried || !leaves_alone(lab, read.op, suspect))
      return read.op;
  }
  return suspect.op;
}

}  // namespace nanquest
