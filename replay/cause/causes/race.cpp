// RACE: a tensor changed while the step was reading it: a loader refilled a batch that backward still needed.
// Proof: the record shows outside memory with other bytes at a later read than at an earlier one, and no op
// wrote between; the two reads belong to one computation (an op and its derivative, or forward ops of one
// pass over a named batch); and the step is finite when that write is undone. If the bytes were not checked
// at each read: the file holds bad values, an op whose recorded result is finite gives another one when these
// values are put in, and a later op reads the memory: the values arrived between the two.
#include <ATen/ATen.h>

#include <algorithm>

#include "probe/trace/births.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/outside_value.h"

namespace nanquest {
namespace {

constexpr int kMaxTried = 4;
constexpr const char* kWhoDid =
    "Somebody outside did: a loader refilling its buffer, another thread, or numpy on shared memory.";
constexpr const char* kAdvice =
    "Copy the batch out of the loader's buffer (clone) before the step, or don't refill a buffer before "
    "backward is over; with non_blocking copies wait for them.";

bool is_batch(const Case& c, SlotId slot) {
  return std::any_of(c.doc().batch.begin(), c.doc().batch.end(),
                     [&](const NamedTensor& t) { return t.slot == slot.row(); });
}

/// The reads before and after the write that must have seen the same; nothing if a program may intend such a
/// write (a buffer that is filled again for the next micro-batch).
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

/// The last op whose recorded result from this memory is finite and that gives another one when run again.
OpId contradicting(const Case& c, SlotId slot) {
  OpId found;
  const RunResult& run = c.whole(Precision::as_recorded);
  const auto made_of_it = [&](OpId op) {
    const PerRow<OpRow, bool> behind = ancestors(c.graph(), op);
    const auto& reads = c.graph().reads(slot);
    return std::any_of(reads.begin(), reads.end(),
                       [&](const TraceGraph::Read& read) { return behind[read.op]; });
  };
  for (const OpId op : c.graph().ops()) {
    if (!follows_from_inputs(c.graph().op(op).flags)) continue;
    const auto rows = c.graph().written(op);
    const std::vector<StatsRow>& now = run.ops[op.index()].written;
    for (std::size_t i = 0; i < rows.size() && i < now.size(); ++i)
      if (const StatsRow* then = rows[i] ? c.graph().stats(rows[i]) : nullptr;
          then && then->has_hash && then->non_finite() == 0 && now[i].non_finite() > 0 && made_of_it(op))
        found = op;
  }
  return found;
}

std::optional<Finding> changed_unseen(const Case& c) {
  const auto outside = outside_value(c);
  const OpId good = outside && outside->slot != kNone && outside->host_write == kNone
                        ? contradicting(c, SlotId{outside->slot})
                        : OpId{};
  if (!good) return std::nullopt;
  OpId bad;
  for (const TraceGraph::Read& read : c.graph().reads(SlotId{outside->slot}))
    if (!bad && good < read.op && !computes_nothing(c.graph().op(read.op))) bad = read.op;
  if (!bad) return std::nullopt;
  const Change until = changed_before(c, outside->slot, bad.row());
  const RunResult run = c.run(until.options);
  const std::vector<StatsRow>& made = run.ops[good.index()].written;
  const bool finite =
      std::all_of(made.begin(), made.end(), [](const StatsRow& s) { return s.non_finite() == 0; });
  if (!finite || c.healthy(run)) return std::nullopt;
  const std::string what = outside->name.empty() ? c.slot_text(outside->slot) : outside->name;
  const std::string first = c.op_with_number(good.row()), second = c.op_with_number(bad.row());
  Finding f;
  f.phase = c.graph().op(bad).phase;
  f.op = bad.row();
  f.source = "an op's recorded result, and the same op on the bytes that the file holds";
  f.evidence.push_back({"non-finite in " + what + " at the end of the step", bad_text(outside->tensor)});
  f.evidence.push_back({first + " as recorded", "finite"});
  f.evidence.push_back({first + " with these bytes", "non-finite"});
  f.evidence.push_back(
      {"the step if they came just before " + second, "non-finite, and " + first + " finite"});
  f.explanation =
      what + " changed while the step was reading it: " + first +
      " made finite values of it when it was recorded, and can't of what is there now. It was good then, "
      "and bad before " +
      second + " read it, and no op of the step wrote it. " + kWhoDid;
  f.advice = kAdvice;
  f.wanted.push_back(replace_non_finite(c, {outside->slot}, what));
  return f;
}

std::optional<Finding> examine_race(const Case& c, const Subject&) {
  if (auto found = changed_unseen(c)) return found;
  int tried = 0;
  for (const OpId op : c.graph().ops()) {
    if (!(c.graph().op(op).flags & kOpHostWrite)) continue;
    const auto torn = torn_reads(c, op);
    if (!torn || ++tried > kMaxTried) continue;
    if (c.op_index() != kNone && c.op_index() < op.row()) continue;  // the harm was done earlier
    Change undone = undone_write(c, op.row());
    if (run_change(c, undone) != TrialResult::finite) continue;
    const SlotId slot = c.graph().slot(c.graph().written(op)[0]);
    const std::string what = c.slot_text(slot.row());
    Finding f;
    f.phase = c.op()->phase;  // finite when the step began
    f.source = "the bytes of that memory at two reads of one step, and no op that wrote between";
    f.evidence.push_back({what + " read first by", c.op_with_number(torn->before.row())});
    f.evidence.push_back({"and with other bytes by", c.op_with_number(torn->after.row())});
    f.evidence.push_back({"ops that wrote it between the two", "0"});
    f.evidence.push_back({"the step with the bytes of the first read throughout", "finite"});
    f.explanation = what + " changed while the step was reading it: " + c.op_text(torn->before.row()) +
                    " and " + c.op_text(torn->after.row()) +
                    " should have seen the same bytes, but no op of the step wrote "
                    "what the second one saw. " +
                    kWhoDid + " With the first bytes throughout the step is finite.";
    f.advice = kAdvice;
    f.wanted.push_back(std::move(undone));
    return f;
  }
  return std::nullopt;
}

}  // namespace

NANQUEST_CAUSE(race) = {
    .label = Label::race,
    .depth = Depth::meaning,
    .examine = examine_race,
};

}  // namespace nanquest
