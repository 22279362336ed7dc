#include "replay/lab/nearness.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace nanquest {
namespace {

double sum_of_squares(const at::Tensor& t) {
  return t.to(at::kDouble).square().sum().item<double>();
}

double gradient_distance(const RunResult& run, const RunResult& exact) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < run.kept.size() && i < exact.kept.size(); ++i) {
    const at::Tensor &a = run.kept[i], &b = exact.kept[i];
    if (!a.defined() || !b.defined() || a.sizes() != b.sizes() || !a.is_floating_point()) continue;
    apart += sum_of_squares(a.to(at::kDouble) - b.to(at::kDouble));
    size += sum_of_squares(b);
  }
  return size > 0 ? std::sqrt(apart / size) : std::sqrt(apart);
}

bool all_zero(const StatsRow& s) {
  return s.count > 1 && s.zero == s.count;
}

void compare_ops(const TraceGraph& graph, const RunResult& recorded, const RunResult& run,
                 const RunResult& exact, Nearness& n) {
  for (const OpId op : graph.ops()) {
    if (graph.op(op).flags & (kOpUninitialised | kOpHostWrite)) continue;
    const std::vector<StatsRow>&a = run.ops[op.index()].written, &b = exact.ops[op.index()].written,
          &was = recorded.ops[op.index()].written;
    bool bad = false, dead = false;
    for (std::size_t i = 0; i < a.size() && i < b.size() && i < was.size(); ++i) {
      bad = bad || (a[i].non_finite() > 0 && b[i].non_finite() == 0 && was[i].non_finite() == 0);
      dead = dead || (all_zero(a[i]) && !all_zero(b[i]) && !all_zero(was[i]));
    }
    n.bad += bad;
    n.dead += dead;
  }
}

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", x);
  return text;
}

}  // namespace

NearnessLimits nearness_limits(const TraceGraph& graph) {
  const auto& rows = graph.doc().tensors;
  const bool narrow = std::any_of(rows.begin(), rows.end(), [](const TensorRow& row) {
    return dtype_is_float(row.dtype) && dtype_size(row.dtype) <= 2;
  });
  return narrow ? NearnessLimits{0.05, 0.3} : NearnessLimits{0.001, 0.01};
}

RunOptions in_fp64(const TraceGraph& graph, const RunOptions& change) {
  RunOptions exact = change;
  exact.keep = graph.doc().gradients;
  exact.stop_when_harmed = false;
  exact.edit.op_precision.clear();
  exact.edit.module_precision.clear();
  const OpId first = exact.edit.first_op(graph);
  exact.precision = first < graph.end() ? Precision::as_recorded : Precision::fp64;
  for (OpId op = first; op < graph.end(); op = OpId{op.row() + 1})
    exact.edit.op_precision[op.row()] = Precision::fp64;
  return exact;
}

Nearness nearness(const TraceGraph& graph, const RunResult& recorded, const RunResult& run,
                  const RunResult& reference) {
  Nearness n;
  if (!reference.finite() || !run.finite()) return n;
  n.known = true;
  n.loss = std::abs(run.loss - reference.loss) / std::max(1.0, std::abs(reference.loss));
  n.gradients = gradient_distance(run, reference);
  compare_ops(graph, recorded, run, reference, n);
  return n;
}

std::string why_not_near(const Nearness& n, const NearnessLimits& limits) {
  if (!n.known) return "the changed step can't be compared with fp64";
  if (n.loss > limits.loss)
    return "the loss is " + number(100 * n.loss) + " % away from what fp64 makes of the same change";
  if (n.gradients > limits.gradients)
    return "the gradients are " + number(100 * n.gradients) +
           " % away from what fp64 makes of the same change";
  if (n.bad > 0) return std::to_string(n.bad) + " ops now give something non-finite that fp64 does not";
  if (n.dead > 0) return std::to_string(n.dead) + " ops now give zeros alone where fp64 gives numbers";
  return "";
}

}  // namespace nanquest
