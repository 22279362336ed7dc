#include "replay/lab/nearness.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>

#include "probe/base/one_of.h"
#include "probe/trace/op_numbers.h"

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

/// By how much of themselves two numbers that `op` compares, or subtracts, may differ through rounding.
double spacing(const TraceGraph& graph, OpId op) {
  double far = 1e-5;
  for (const TensorId row : graph.reads(op))
    if (dtype_is_float(graph.tensor(row).dtype) && dtype_size(graph.tensor(row).dtype) <= 2) far = 2e-2;
  return far;
}

/// Ops that give zeros alone in `run` and rounding errors in `exact`: the difference of two numbers that are
/// equal but for rounding (a weight divided by its own norm, minus 1), a product with it, and what is
/// computed from these.
class Differences {
 public:
  Differences(const TraceGraph& graph, const RunResult& run, const RunResult& exact)
      : graph_(graph), run_(run), exact_(exact), equal_(run.ops.size()) {}

  /// To be asked of every op, in order.
  bool is_rounding(OpId op) {
    const std::vector<StatsRow>& a = run_.ops[op.index()].written;
    if (a.empty() || !std::all_of(a.begin(), a.end(), all_zero)) return false;
    double largest = 0, product = 1;
    bool of_difference = false;
    for (const TensorId row : graph_.reads(op)) {
      const OpId maker = graph_.producer(row, op);
      of_difference = of_difference || (maker && equal_[maker.index()]);
      const double size = maker ? largest_of(exact_.ops[maker.index()].written) : outside(row);
      largest = std::max(largest, size);
      product *= size;
    }
    const std::string_view name = plain_name(graph_.op(op).name);
    const double left = is_one_of(name, {"sub", "add", "rsub"}) ? largest * spacing(graph_, op)
                        : name == "mul"                         ? product * kProduct
                                                                : 0;
    const bool rounded = largest_of(exact_.ops[op.index()].written) <= left;
    return equal_[op.index()] = of_difference || rounded;
  }

 private:
  /// A product of this share of the largest possible one is of two factors that are large in different
  /// places.
  static constexpr double kProduct = 1e-5;

  static double largest_of(const std::vector<StatsRow>& written) {
    double largest = 0;
    for (const StatsRow& s : written) largest = std::max(largest, s.amax);
    return largest;
  }
  double outside(TensorId row) const {
    const StatsRow* s = graph_.stats(row);
    return s ? s->amax : 0;
  }

  const TraceGraph& graph_;
  const RunResult &run_, &exact_;
  std::vector<bool> equal_;
};

void compare_ops(const TraceGraph& graph, const RunResult& recorded, const RunResult& run,
                 const RunResult& exact, Nearness& n) {
  Differences differences(graph, run, exact);
  for (const OpId op : graph.ops()) {
    const bool rounding = differences.is_rounding(op);
    if (graph.op(op).flags & (kOpUninitialised | kOpHostWrite)) continue;
    const std::vector<StatsRow>&a = run.ops[op.index()].written, &b = exact.ops[op.index()].written,
          &was = recorded.ops[op.index()].written;
    bool bad = false, dead = false;
    for (std::size_t i = 0; i < a.size() && i < b.size() && i < was.size(); ++i) {
      bad = bad || (a[i].non_finite() > 0 && b[i].non_finite() == 0 && was[i].non_finite() == 0);
      dead = dead || (all_zero(a[i]) && !all_zero(b[i]) && !all_zero(was[i]) && !rounding);
    }
    n.bad += bad;
    n.dead += dead;
  }
}

bool rounds(const OpRow& op) {
  return is_one_of(plain_name(op.name), {"round", "floor", "ceil", "trunc"});
}

bool compares(const OpRow& op) {
  return is_one_of(plain_name(op.name), {"ge", "gt", "le", "lt", "eq", "ne"});
}

/// Where the two operands of a comparison are equal but for rounding; undefined if they can't be compared so.
at::Tensor are_tied(const std::vector<c10::IValue>& stack, double far) {
  const auto wide = [&](std::size_t i) {
    if (i >= stack.size()) return at::Tensor();
    if (stack[i].isScalar()) return at::scalar_tensor(stack[i].toScalar(), at::kDouble);
    return stack[i].isTensor() && stack[i].toTensor().defined() ? stack[i].toTensor().to(at::kDouble)
                                                                : at::Tensor();
  };
  const at::Tensor a = wide(0), b = wide(1);
  if (!a.defined() || !b.defined()) return {};
  return (a - b).abs() <= at::maximum(a.abs(), b.abs()) * far;
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

Choices::Choices(const TraceGraph& graph) : graph_(graph) {
  for (const OpId op : graph.ops())
    if (rounds(graph.op(op)) || compares(graph.op(op))) ops_.push_back(op);
}

void Choices::keep_in(RunOptions& options) {
  for (const OpId op : ops_)
    options.edit.output_edit[op.row()] =
        [this, op = op.row(), before = options.edit.output_edit[op.row()]](std::vector<at::Tensor>& written) {
          if (before) before(written);
          std::vector<at::Tensor>& kept = kept_[op];
          kept.clear();
          for (const at::Tensor& t : written)
            kept.push_back(t.defined() ? t.to(at::kDouble, false, /*copy=*/true) : at::Tensor());
        };
}

RunOptions Choices::put_into(RunOptions reference) const {
  for (const auto& [op, kept] : kept_) {
    const auto tied = std::make_shared<at::Tensor>();
    if (compares(graph_.op(OpId{op})))
      reference.edit.op_edit[op] = [tied, far = spacing(graph_, OpId{op}),
                                    before = reference.edit.op_edit[op]](std::vector<c10::IValue>& stack) {
        if (before && before(stack)) return true;
        *tied = are_tied(stack, far);
        return false;
      };
    reference.edit.output_edit[op] =
        [tied, kept = kept, before = reference.edit.output_edit[op]](std::vector<at::Tensor>& written) {
          if (before) before(written);
          for (std::size_t i = 0; i < written.size() && i < kept.size(); ++i) {
            const at::Tensor &t = written[i], &other = kept[i];
            if (!t.defined() || !other.defined() || t.sizes() != other.sizes()) continue;
            if (t.is_floating_point())
              t.copy_(at::where((t - other).abs() <= 1, other.to(t.scalar_type()), t));
            else if (tied->defined() && tied->sizes() == t.sizes())
              t.copy_(at::where(*tied, other.to(t.scalar_type()), t));
          }
        };
  }
  return reference;
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
