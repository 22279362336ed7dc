#include "replay/rewind/last_batch.h"

#include <vector>

#include "probe/trace/graph.h"
#include "replay/rewind/once_more.h"

namespace nanquest {
namespace {

/// Bytes that the host wrote are no operation of the program: their number depends on whether a loader's
/// memory was used before.
std::vector<std::int32_t> operations(const SnapshotDoc& doc, const StepSpan& span) {
  std::vector<std::int32_t> ops;
  for (std::int32_t i = span.begin; i < span.end; ++i)
    if (!(doc.ops[static_cast<std::size_t>(i)].flags & kOpHostWrite)) ops.push_back(i);
  return ops;
}

bool alike(const OpRow& a, const OpRow& b) {
  return a.name == b.name && a.overload == b.overload && a.arg_count == b.arg_count &&
         a.written_count == b.written_count;
}

/// What the last step reads, exchanged for what the step before read at the same place.
class Exchange {
 public:
  Exchange(TapeDoc& tape, const StepSpan& before, const StepSpan& last)
      : doc_(tape.trace), graph_(tape.trace), before_(before), last_(last) {}

  bool all() {
    const std::vector<std::int32_t> from = operations(doc_, before_), to = operations(doc_, last_);
    if (to.size() > from.size()) return false;  // only the last step may be unfinished
    for (std::size_t k = 0; k < to.size(); ++k)
      if (!op(from[k], to[k])) return false;
    return any_;
  }

 private:
  OpRow& row_of(std::int32_t op) { return doc_.ops[static_cast<std::size_t>(op)]; }

  bool op(std::int32_t from, std::int32_t to) {
    const OpRow& then = row_of(from);
    OpRow& now = row_of(to);
    if (!alike(then, now) || (now.rng != kNone && then.rng == kNone)) return false;
    any_ = any_ || now.rng != then.rng;
    now.rng = then.rng;
    for (std::int32_t a = 0; a < now.arg_count; ++a) {
      const ArgRow& read = doc_.args[static_cast<std::size_t>(then.first_arg) + static_cast<std::size_t>(a)];
      ArgRow& reads = doc_.args[static_cast<std::size_t>(now.first_arg) + static_cast<std::size_t>(a)];
      if (reads.kind != read.kind) return false;
      if (reads.kind == ArgKind::tensor && is_batch(reads.tensor) && !exchange(from, read.tensor, to, reads))
        return false;
    }
    return true;
  }

  /// Read from outside in the last step and not before it, or filled by the host in it.
  bool is_batch(std::int32_t row) const {
    const SlotId slot = graph_.slot(TensorId{row});
    if (!slot) return false;
    const SlotOrigin origin = doc_.slots[static_cast<std::size_t>(slot.row())].origin;
    if (origin != SlotOrigin::external && origin != SlotOrigin::input) return false;
    if (filled(slot, last_.begin, last_.end)) return true;
    const std::vector<TraceGraph::Read>& reads = graph_.reads(slot);
    return !reads.empty() && reads.front().op.row() >= last_.begin;
  }

  /// The last op of [begin, end) in which the host filled that memory; none if it did not.
  OpId filled(SlotId slot, std::int32_t begin, std::int32_t end) const {
    OpId last;
    for (const TraceGraph::Write& write : graph_.writes(slot))
      if (write.op.row() >= begin && write.op.row() < end && (graph_.op(write.op).flags & kOpHostWrite))
        last = write.op;
    return last;
  }

  bool exchange(std::int32_t from, std::int32_t read, std::int32_t to, ArgRow& now) {
    const SlotId then = graph_.slot(TensorId{read}), slot = graph_.slot(TensorId{now.tensor});
    const TensorRow& a = doc_.tensors[static_cast<std::size_t>(read)];
    const TensorRow& b = doc_.tensors[static_cast<std::size_t>(now.tensor)];
    if (!then || a.dtype != b.dtype || a.sizes != b.sizes) return false;
    any_ = true;
    if (then == slot) {  // memory that is filled again for each step
      const OpId earlier = filled(slot, 0, from), later = filled(slot, last_.begin, to);
      if (!earlier || !later) return false;
      row_of(later.row()).host_data = row_of(earlier.row()).host_data;
      return true;
    }
    for (const TraceGraph::Write& write : graph_.writes(then))
      if (write.op.row() >= from && write.op.row() < last_.end)
        return false;  // it holds something else by now
    now.tensor = read;
    return true;
  }

  SnapshotDoc& doc_;
  const TraceGraph graph_;
  StepSpan before_, last_;
  bool any_ = false;
};

}  // namespace

TapeDoc last_step_alone(const TapeDoc& tape) {
  TapeDoc alone = tape;
  SnapshotDoc& doc = alone.trace;
  const std::int32_t begin = spans_of(tape).back().begin;
  const auto moved = [&](std::int32_t op) { return op == kNone || op < begin ? kNone : op - begin; };
  doc.ops.erase(doc.ops.begin(), doc.ops.begin() + begin);
  for (OpRow& op : doc.ops) op.forward_op = moved(op.forward_op);
  doc.culprit = {};
  doc.twin = {};
  TapeStep last = tape.steps.back();
  last.gate -= begin;
  last.end = moved(last.end);
  last.loss_op = moved(last.loss_op);
  if (last.loss_op == kNone) last.loss = kNone;
  alone.steps = {last};
  std::erase_if(alone.reads, [&](const TapeRead& read) { return read.op < begin; });
  for (TapeRead& read : alone.reads) read.op -= begin;
  return alone;
}

std::optional<TapeDoc> without_step(const TapeDoc& tape, std::int64_t number) {
  return without_steps(tape, number, number);
}

std::optional<TapeDoc> without_steps(const TapeDoc& tape, std::int64_t first, std::int64_t last) {
  const auto at = [&](std::int64_t number) {
    return std::find_if(tape.steps.begin(), tape.steps.end(),
                        [&](const TapeStep& step) { return step.step == number; });
  };
  const auto from = at(first), to = at(last);
  if (from == tape.steps.end() || to == tape.steps.end() || to < from || to + 1 == tape.steps.end())
    return std::nullopt;
  const std::vector<StepSpan> spans = spans_of(tape);
  const StepSpan out{spans[static_cast<std::size_t>(from - tape.steps.begin())].begin,
                     spans[static_cast<std::size_t>(to - tape.steps.begin())].end};
  const std::int32_t length = out.end - out.begin;
  const auto inside = [&](std::int32_t op) { return op >= out.begin && op < out.end; };
  const auto moved = [&](std::int32_t op) { return op >= out.end ? op - length : inside(op) ? kNone : op; };
  TapeDoc left = tape;
  SnapshotDoc& doc = left.trace;
  doc.ops.erase(doc.ops.begin() + out.begin, doc.ops.begin() + out.end);
  for (OpRow& op : doc.ops) op.forward_op = op.forward_op == kNone ? kNone : moved(op.forward_op);
  doc.culprit = {};
  doc.twin = {};
  left.steps.erase(left.steps.begin() + (from - tape.steps.begin()),
                   left.steps.begin() + (to - tape.steps.begin()) + 1);
  for (TapeStep& step : left.steps) {
    if (step.gate >= out.end) step.gate -= length;
    if (step.end != kNone && step.end >= out.end) step.end -= length;
    if (step.loss_op != kNone) step.loss_op = moved(step.loss_op);
  }
  std::erase_if(left.reads, [&](const TapeRead& read) { return inside(read.op); });
  for (TapeRead& read : left.reads) read.op = moved(read.op);
  return left;
}

std::optional<TapeDoc> last_step_on_batch_before(const TapeDoc& tape, std::size_t back) {
  if (back == 0 || tape.steps.size() <= back) return std::nullopt;
  TapeDoc other = tape;
  const std::vector<StepSpan> spans = spans_of(tape);
  if (!Exchange(other, spans[spans.size() - 1 - back], spans.back()).all()) return std::nullopt;
  other.trace.culprit = {};
  other.trace.twin = {};
  return other;
}

}  // namespace nanquest
