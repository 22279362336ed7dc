#include "replay/diff/formats.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/dtype_map.h"

namespace nanquest::diff {
namespace {

/// The number format of what an op writes first; nothing if that is no floating number.
std::optional<at::ScalarType> format_of(const TraceGraph& graph, OpId op) {
  for (const TensorId row : graph.written(op))
    if (row) {
      const at::ScalarType type = scalar_type_of(graph.tensor(row).dtype);
      return trace::is_float(type) ? std::optional(type) : std::nullopt;
    }
  return std::nullopt;
}

/// The narrowest format that these ops write.
std::optional<at::ScalarType> narrowest(const TraceGraph& graph, const std::vector<OpId>& ops) {
  std::optional<at::ScalarType> found;
  for (const OpId op : ops)
    if (const auto type = format_of(graph, op); type && (!found || is_narrower(*type, *found))) found = type;
  return found;
}

/// The precision that turns formats narrower than `type` into it.
Precision precision_of(at::ScalarType type) {
  return type == at::kDouble ? Precision::fp64 : Precision::fp32;
}

/// The formats of both sides at their narrowest, and the ops that are run wider.
class Trial {
 public:
  Trial(const Steps& steps, const FirstBeyond& first, const Edits& edits, const Edits& edits_of_b)
      : steps_(steps), first_(first), edits_(edits), edits_of_b_(edits_of_b) {}

  bool agree(const std::vector<OpId>& ops_a, const std::vector<OpId>& ops_b, Precision wide) const {
    RunOptions left = edits_.options(), right = edits_of_b_.options();
    left.stop_after = first_.pair.a.row(), right.stop_after = first_.pair.b.row();
    for (const OpId op : ops_a) left.edit.op_precision[op.row()] = wide;
    for (const OpId op : ops_b) right.edit.op_precision[op.row()] = wide;
    bool result = false;
    const auto compare = [&](const OpPair&, const std::vector<at::Tensor>& a,
                             const std::vector<at::Tensor>& b) {
      const auto i = static_cast<std::size_t>(first_.entry);
      result = i < a.size() && i < b.size() && a[i].defined() && b[i].defined() &&
               !beyond(apart(a[i], b[i]), first_.limit, a[i].scalar_type(), b[i].scalar_type());
    };
    const LockstepResult runs = lockstep({&steps_.a, &left}, {&steps_.b, &right}, {first_.pair}, compare);
    return result && runs.a.failed == 0 && runs.b.failed == 0 && runs.a.kept_format == 0 &&
           runs.b.kept_format == 0;
  }

 private:
  const Steps& steps_;
  const FirstBeyond& first_;
  const Edits &edits_, &edits_of_b_;
};

}  // namespace

bool is_narrower(at::ScalarType a, at::ScalarType b) {
  return c10::elementSize(a) < c10::elementSize(b);
}

std::optional<Formats> formats_of(const TraceGraph& a, const TraceGraph& b,
                                  const std::vector<OpPair>& pairs) {
  Formats formats;
  for (const OpPair& pair : pairs) {
    const auto left = format_of(a, pair.a), right = format_of(b, pair.b);
    if (!left || !right || *left == *right) continue;
    if (formats.places++ > 0) continue;
    formats.first = words_of(a, pair.a);
    formats.in_a = at::toString(*left), formats.in_b = at::toString(*right);
  }
  return formats.places > 0 ? std::optional(formats) : std::nullopt;
}

std::string not_in_fp64(const Replayer& replayer) {
  RunOptions options;
  options.precision = Precision::fp64;
  options.scan = false;
  const RunResult run = replayer.run(options);
  const TraceGraph graph(replayer.doc());
  std::int64_t count = 0;
  OpId first;
  for (const OpId op : graph.ops()) {
    const OpOutcome& outcome = run.ops[op.index()];
    const bool as_recorded = outcome.kept_format || (outcome.substituted && format_of(graph, op));
    if ((as_recorded || !(outcome.ran || outcome.substituted)) && count++ == 0) first = op;
  }
  if (count == 0) return "";
  return std::to_string(count) + (count == 1 ? " operation" : " operations") +
         " can only be taken as recorded, first " + words_of(graph, first);
}

std::optional<Widened> try_formats(const Steps& steps, const FirstBeyond& first, const Edits& edits,
                                   const Edits& edits_of_b, const std::vector<OpId>& ops_a,
                                   const std::vector<OpId>& ops_b) {
  std::vector<OpId> left = ops_a, right = ops_b;
  left.push_back(first.pair.a), right.push_back(first.pair.b);
  const auto narrow_a = narrowest(steps.graph_a, left), narrow_b = narrowest(steps.graph_b, right);
  if (!narrow_a || !narrow_b) return std::nullopt;
  Widened widened{"", "", at::toString(*narrow_a), at::toString(*narrow_b)};
  const Trial trial(steps, first, edits, edits_of_b);
  const auto tried = [&](const char* side, const std::vector<OpId>& in_a, const std::vector<OpId>& in_b,
                         Precision wide) {
    if (!trial.agree(in_a, in_b, wide)) return false;
    widened.side = side, widened.format = trace::precision_name(wide);
    return true;
  };
  const bool found = is_narrower(*narrow_b, *narrow_a)   ? tried("B", {}, right, precision_of(*narrow_a))
                     : is_narrower(*narrow_a, *narrow_b) ? tried("A", left, {}, precision_of(*narrow_b))
                                                         : tried("both", left, right, Precision::fp64);
  return found ? std::optional(widened) : std::nullopt;
}

}  // namespace nanquest::diff
