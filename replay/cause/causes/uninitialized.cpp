// UNINITIALIZED: memory was read that nobody had written. Proof: by the write ranges of the trace, what the
// culprit reads shows memory as `empty` handed it out (the record either saw the same bytes at the first read
// as when it was handed out, or nothing but partial writes lies between), and the step run with other
// fillings of that memory is bad with one and good with another.
#include <ATen/ATen.h>

#include <limits>
#include <set>

#include "replay/case/host_data.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"

namespace nanquest {
namespace {

/// The host write put down the very bytes that the memory held when it was handed out: it is no write, but
/// the record of a first read.
bool is_first_read(const Case& c, OpId op) {
  return (c.graph().op(op).flags & kOpHostWrite) && host_data(c, op) == HostData::first_read;
}

/// Ops that handed out, or put on record, memory that `row` shows unwritten before op `before`. Through ops
/// that change a part of what they write in place.
void collect(const Case& c, TensorId row, OpId before, std::set<std::int32_t>& found, int depth) {
  (void)c.graph().each_write_behind(row, before, [&](const TraceGraph::Write& write) {
    const OpRow& op = c.graph().op(write.op);
    if (hands_out_unwritten(c, write.op) || is_first_read(c, write.op)) {
      found.insert(write.op.row());
      return true;
    }
    // index_put_, masked_fill_ and their kind leave the rest as it was.
    if (depth > 0 && op.name.ends_with("_"))
      for (const TensorId read : c.graph().reads(write.op))
        if (c.graph().slot(read) == c.graph().slot(row)) collect(c, read, write.op, found, depth - 1);
    return false;
  });
}

std::vector<std::int32_t> sources(const Case& c) {
  std::set<std::int32_t> found;
  const OpId op{c.op_index()};
  if (is_first_read(c, op)) found.insert(op.row());
  if (hands_out_unwritten(c, op)) found.insert(op.row());
  for (const TraceGraph::Argument& a : c.graph().arguments(op)) collect(c, a.row, op, found, 4);
  return {found.begin(), found.end()};
}

std::optional<Finding> examine_uninitialized(const Case& c, const Subject&) {
  if (!c.op()) return std::nullopt;
  const std::vector<std::int32_t> memory = sources(c);
  if (memory.empty()) return std::nullopt;
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (run_change(c, filled_memory(c, memory, kNaN)) != TrialResult::non_finite) return std::nullopt;
  Change zeros = filled_memory(c, memory, 0), ones = filled_memory(c, memory, 1);
  const bool with_zeros = run_change(c, zeros) == TrialResult::finite;
  const bool with_ones = run_change(c, ones) == TrialResult::finite;
  if (!with_zeros && !with_ones) return std::nullopt;
  OpId maker = OpId{memory.front()};
  if (const auto rows = c.graph().written(maker); !hands_out_unwritten(c, maker) && !rows.empty())
    if (const OpId from = handed_out(c, c.graph().slot(rows[0]), maker)) maker = from;
  Finding f;
  f.not_computed = true;
  // What an op of the step handed out was not there when the step began.
  if (hands_out_unwritten(c, maker)) {
    f.origin = Origin::op;
    f.phase = c.op()->phase;
  }
  f.source = "the write ranges of the trace, and the step run with that memory filled otherwise";
  f.evidence.push_back({"memory nobody had written, handed out by",
                        c.op_text(maker.row()) + " (op " + std::to_string(maker.row()) + ")"});
  f.evidence.push_back({"the step with that memory filled with NaN", "non-finite"});
  f.evidence.push_back({"the step with that memory filled with 0", with_zeros ? "finite" : "non-finite"});
  f.evidence.push_back({"the step with that memory filled with 1", with_ones ? "finite" : "non-finite"});
  f.explanation = "Memory was read that nobody had written: " + c.op_text(maker.row()) + " (op " +
                  std::to_string(maker.row()) +
                  ") handed it out as it was, and the step's result hangs on what lay "
                  "there by chance: finite with one filling, not with another.";
  f.advice =
      "Make the tensor with zeros (or full) instead of empty, or write all of it before it is read; "
      "torch.utils.deterministic.fill_uninitialized_memory shows such reads as NaN.";
  f.wanted.push_back(with_zeros ? std::move(zeros) : std::move(ones));
  return f;
}

}  // namespace

NANQUEST_CAUSE(uninitialized) = {
    .label = Label::uninitialized,
    .supersedes = {Label::bad_data, Label::bad_state, Label::div_zero, Label::log_zero, Label::domain,
                   Label::exp_overflow, Label::fp16_overflow, Label::zero_times_inf, Label::inf_logit},
    .examine = examine_uninitialized,
};

}  // namespace nanquest
