// RACE: a tensor changed while the step was reading it: a loader refilled a batch that backward still needed. Proof:
// the record shows memory from outside with other bytes at a later read than at an earlier one, and no op wrote
// between; the two reads belong to one computation (an op and its derivative, or forward ops of one pass over a
// named batch); and the step is finite when that write is taken back.
#include <ATen/ATen.h>

#include <algorithm>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

constexpr int kMaxTried = 4;

bool is_batch(const Case& c, SlotId slot) {
  return std::any_of(c.doc().batch.begin(), c.doc().batch.end(),
                     [&](const NamedTensor& t) { return t.slot == slot.row(); });
}

/// The reads on both sides of the write that must have seen the same; nothing if a program may mean such a write
/// (a buffer that is filled again for the next micro-batch).
struct Torn {
  OpId before, after;
};
std::optional<Torn> torn_reads(const Case& c, OpId write) {
  const auto rows = c.graph().written(write);
  const SlotId slot = rows.empty() || !rows[0] ? SlotId{} : c.graph().slot(rows[0]);
  if (!slot || get(c.doc(), slot).origin == SlotOrigin::produced) return std::nullopt;
  std::optional<Torn> one_pass;
  for (const TraceGraph::Read& after : c.graph().reads(slot)) {
    if (after.op < write || after.op == write) continue;
    const OpId forward = c.graph().forward_of(after.op);
    for (const TraceGraph::Read& before : c.graph().reads(slot)) {
      if (!(before.op < write)) break;
      if (forward && before.op == forward) return Torn{before.op, after.op};
      if (!is_batch(c, slot) || one_pass) continue;
      bool backward_between = false;
      for (std::int32_t i = before.op.row(); i <= after.op.row(); ++i)
        backward_between = backward_between || c.row(i)->phase == Phase::backward;
      const bool same_part = c.graph().op(before.op).micro_batch == c.graph().op(after.op).micro_batch;
      if (!backward_between && same_part) one_pass = Torn{before.op, after.op};
    }
  }
  return one_pass;
}

std::optional<Finding> examine(const Case& c, const Subject&) {
  int tried = 0;
  for (const OpId op : c.graph().ops()) {
    if (!(c.graph().op(op).flags & kOpHostWrite)) continue;
    const auto torn = torn_reads(c, op);
    if (!torn || ++tried > kMaxTried) continue;
    if (c.op_index() != kNone && c.op_index() < op.row()) continue;  // the harm was done before
    Change undone = undone_write(c, op.row());
    if (run_change(c, undone.options) != TrialResult::finite) continue;
    const SlotId slot = c.graph().slot(c.graph().written(op)[0]);
    const std::string& name = get(c.doc(), slot).name;
    const std::string what =
        name.empty() ? "memory from outside (storage " + std::to_string(slot.row()) + ")" : name;
    Finding f;
    f.phase = c.op()->phase;  // good when the step began
    f.source = "the bytes of that memory at two reads of one step, and no op that wrote between";
    f.evidence.push_back({what + " read first by", c.op_text(torn->before.row()) + " (op " +
                                                       std::to_string(torn->before.row()) + ")"});
    f.evidence.push_back({"and with other bytes by",
                          c.op_text(torn->after.row()) + " (op " + std::to_string(torn->after.row()) + ")"});
    f.evidence.push_back({"ops that wrote it between the two", "0"});
    f.evidence.push_back({"the step with the bytes of the first read throughout", "finite"});
    f.explanation =
        what + " changed while the step was reading it: " + c.op_text(torn->before.row()) + " and " +
        c.op_text(torn->after.row()) +
        " should have seen the same bytes, but no op of the step wrote "
        "what the second one saw. Somebody outside did: a loader refilling its buffer, another thread, or "
        "numpy on shared memory. With the first bytes throughout the step is finite.";
    f.advice =
        "Copy the batch out of the loader's buffer (clone) before the step, or don't refill a buffer before "
        "backward is over; with non_blocking copies wait for them.";
    f.wanted.push_back(std::move(undone));
    return f;
  }
  return std::nullopt;
}

}  // namespace

NANQUEST_CAUSE(race) = {
    .label = Label::race,
    .supersedes = {Label::bad_data, Label::log_zero, Label::div_zero, Label::domain, Label::exp_overflow,
                   Label::fp16_overflow, Label::zero_times_inf, Label::inf_logit, Label::singular_grad,
                   Label::unselected_branch, Label::eps_underflow, Label::bad_setting},
    .examine = examine,
};

}  // namespace nanquest
