#include "replay/rewind/once_more.h"

#include <algorithm>
#include <utility>

#include "probe/trace/graph.h"

namespace nanquest {
namespace {

/// What is known of a storage in the repeated steps.
struct Use {
  std::int32_t first_step = kNone, last_step = kNone;
  bool written = false;
};

void use(std::vector<Use>& uses, const SnapshotDoc& doc, std::int32_t row, std::int32_t step, bool writes) {
  if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size()) return;
  const std::int32_t slot = doc.tensors[static_cast<std::size_t>(row)].slot;
  if (slot < 0 || static_cast<std::size_t>(slot) >= uses.size()) return;
  Use& each = uses[static_cast<std::size_t>(slot)];
  if (each.first_step == kNone) each.first_step = step;
  each.last_step = step;
  each.written = each.written || writes;
}

std::vector<Use> uses_in(const TapeDoc& tape, const std::vector<StepSpan>& spans, std::size_t steps) {
  const SnapshotDoc& doc = tape.trace;
  std::vector<Use> uses(doc.slots.size());
  for (std::size_t s = 0; s < steps; ++s)
    for (std::int32_t i = spans[s].begin; i < spans[s].end; ++i) {
      const OpRow& op = doc.ops[static_cast<std::size_t>(i)];
      const auto step = static_cast<std::int32_t>(s);
      for (std::int32_t a = op.first_arg; a < op.first_arg + op.arg_count; ++a)
        if (const ArgRow& arg = doc.args[static_cast<std::size_t>(a)]; arg.kind == ArgKind::tensor)
          use(uses, doc, arg.tensor, step, false);
      for (std::int32_t k = 0; k < op.output_count; ++k) use(uses, doc, op.first_output + k, step, false);
      for (std::int32_t k = 0; k < op.written_count; ++k)
        use(uses, doc, doc.written[static_cast<std::size_t>(op.first_written) + static_cast<std::size_t>(k)],
            step, true);
    }
  return uses;
}

/// Where each slot's part of the second time is: what is kept from step to step, and what never changes, is
/// in itself.
std::vector<std::int32_t> slots_again(SnapshotDoc& doc, const std::vector<Use>& uses) {
  std::vector<std::int32_t> place(uses.size());
  for (std::size_t i = 0; i < uses.size(); ++i) {
    place[i] = static_cast<std::int32_t>(i);
    if (uses[i].first_step == kNone) continue;
    const bool outside = doc.slots[i].origin != SlotOrigin::produced;
    if (outside && (!uses[i].written || uses[i].first_step != uses[i].last_step)) continue;
    place[i] = static_cast<std::int32_t>(doc.slots.size());
    doc.slots.push_back(Slot(doc.slots[i]));
  }
  return place;
}

}  // namespace

std::vector<StepSpan> spans_of(const TapeDoc& tape) {
  std::vector<StepSpan> spans;
  std::int32_t begin = 0;
  for (const TapeStep& step : tape.steps) {
    const std::int32_t end = step.end == kNone ? step.gate : step.end;
    spans.push_back({begin, end});
    begin = end;
  }
  return spans;
}

std::optional<std::size_t> span_with(std::span<const StepSpan> spans, std::int32_t op) {
  const auto found =
      std::find_if(spans.begin(), spans.end(), [&](const StepSpan& span) { return op < span.end; });
  if (found == spans.end()) return std::nullopt;
  return static_cast<std::size_t>(found - spans.begin());
}

void close_last_step(TapeDoc& tape, std::int64_t number) {
  const std::vector<StepSpan> spans = spans_of(tape);
  const auto all = static_cast<std::int32_t>(tape.trace.ops.size());
  if (!spans.empty() && (spans.back().end >= all || tape.steps.back().step >= number)) return;
  TapeStep last{.step = number, .gate = all};
  const TraceGraph graph(tape.trace);
  if (const TensorId loss{tape.trace.loss}; graph.slot(loss))
    for (const TraceGraph::Write& write : graph.writes(graph.slot(loss))) {
      last.loss_op = write.op.row();
      last.loss = write.row.row();
    }
  tape.steps.push_back(last);
}

TapeDoc once_more(const TapeDoc& tape, std::int64_t steps, bool leave_out_last) {
  TapeDoc all = tape;
  SnapshotDoc& doc = all.trace;
  const std::vector<StepSpan> spans = spans_of(tape);
  const std::size_t without_last = tape.steps.size() - 1;
  const auto again = std::min(without_last, static_cast<std::size_t>(std::max<std::int64_t>(steps, 0)));
  if (leave_out_last) {
    doc.ops.resize(static_cast<std::size_t>(spans.back().begin));
    std::erase_if(all.reads,
                  [&](const TapeRead& r) { return r.op >= static_cast<std::int32_t>(doc.ops.size()); });
    all.steps.pop_back();
    doc.loss = kNone;
    doc.gradients.clear();
  }
  // What was recorded of the step as a whole is not true of the second time.
  doc.culprit = {};
  doc.twin = {};
  if (again == 0) return all;
  const std::int32_t end = spans[again - 1].end;
  const std::vector<std::int32_t> place = slots_again(doc, uses_in(tape, spans, again));
  const auto ops = static_cast<std::int32_t>(doc.ops.size());
  const auto tensors = static_cast<std::int32_t>(doc.tensors.size());
  const auto args = static_cast<std::int32_t>(doc.args.size());
  const auto written = static_cast<std::int32_t>(doc.written.size());
  for (std::int32_t i = 0; i < tensors; ++i) {
    TensorRow row = doc.tensors[static_cast<std::size_t>(i)];
    if (row.slot >= 0 && static_cast<std::size_t>(row.slot) < place.size())
      row.slot = place[static_cast<std::size_t>(row.slot)];
    row.stats = kNone;
    doc.tensors.push_back(std::move(row));
  }
  const auto moved = [](std::int32_t row, std::int32_t by) { return row == kNone ? kNone : row + by; };
  for (std::int32_t i = 0; i < args; ++i) {
    ArgRow arg = doc.args[static_cast<std::size_t>(i)];
    arg.tensor = moved(arg.tensor, tensors);
    doc.args.push_back(std::move(arg));
  }
  for (std::int32_t i = 0; i < written; ++i)
    doc.written.push_back(moved(doc.written[static_cast<std::size_t>(i)], tensors));
  for (std::int32_t i = 0; i < end; ++i) {
    OpRow op = tape.trace.ops[static_cast<std::size_t>(i)];
    op.forward_op = moved(op.forward_op, ops);
    op.first_arg += args;
    op.first_output += tensors;
    op.first_written += written;
    doc.ops.push_back(std::move(op));
  }
  for (std::size_t s = 0; s < again; ++s) {
    TapeStep step = tape.steps[s];
    step.step = tape.steps.back().step + 1 + static_cast<std::int64_t>(s);
    step.gate += ops;
    step.end = moved(step.end, ops);
    step.loss_op = moved(step.loss_op, ops);
    step.loss = moved(step.loss, tensors);
    all.steps.push_back(step);
  }
  for (const TapeRead& read : tape.reads)
    if (read.op < end) all.reads.push_back({read.op + ops, read.value, read.whole});
  return all;
}

}  // namespace nanquest
