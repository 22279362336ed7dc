// HARDWARE: the same inputs gave other outputs on a second execution. Proof: of all ops the culprit is the
// first whose recorded output has another hash than the replay's; everything before it came back bit for bit;
// it was not finite when recorded and is finite here; here it gives the same bits three times; the
// environment is the recorded one; and it does not go bad with other thread counts or kernels. Claimed for
// deterministic ops on the CPU only: what other kernels, versions, thread counts or random numbers could
// explain is no fault of the machine.
#include <algorithm>

#include "replay/case/repeatable.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/trace/environment.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Hashes of what each op wrote, up to the culprit.
RunResult hashed(const Case& c) {
  RunOptions options;
  options.hash = true;
  options.stop_after = c.op_index();
  return c.run(options);
}

bool gives_bad_values(const RunResult& run, OpId op) {
  const std::vector<StatsRow>& written = run.ops[op.index()].written;
  return std::any_of(written.begin(), written.end(), [](const StatsRow& s) { return s.non_finite() > 0; });
}

std::optional<Finding> examine_hardware(const Case& c, const Subject&) {
  const OpRow* op = c.op();
  if (!op || !is_repeatable(*op) || c.doc().basis != "every_output" ||
      c.doc().hash_kind != HashKind::contents || c.doc().environment.empty())
    return std::nullopt;
  for (const Slot& slot : c.doc().slots)
    if (slot.device != "cpu") return std::nullopt;
  if (reads_shared_memory(c.graph(), OpId{c.op_index()})) return std::nullopt;
  if (!trace::environment_differences(c.doc()).empty()) return std::nullopt;
  const OpId culprit{c.op_index()};
  const RunResult runs[] = {hashed(c), hashed(c), hashed(c)};
  std::int64_t compared = 0;
  for (const OpId before : c.graph().ops()) {
    if (!(before < culprit)) break;
    if (c.graph().op(before).flags & kOpUninitialised) continue;
    const Likeness likeness = compared_with_recorded(c.graph(), before, runs[0].ops[before.index()]);
    if (likeness == Likeness::other) return std::nullopt;
    compared += likeness == Likeness::equal;
  }
  std::uint64_t bad = 0;
  for (const RunResult& run : runs) {
    const OpOutcome& outcome = run.ops[culprit.index()];
    if (compared_with_recorded(c.graph(), culprit, outcome) != Likeness::other || outcome.substituted)
      return std::nullopt;
    for (std::size_t i = 0; i < outcome.written.size(); ++i) {
      if (outcome.written[i].hash != runs[0].ops[culprit.index()].written[i].hash) return std::nullopt;
    }
    if (gives_bad_values(run, culprit)) return std::nullopt;
  }
  // A kernel that fails with some ways of splitting the work is no fault of the machine.
  for (const bool threads : {true, false})
    if (gives_bad_values(computed_otherwise([&](const RunOptions& o) { return c.run(o); }, culprit, threads),
                         culprit))
      return std::nullopt;
  for (const TensorId row : c.graph().written(culprit))
    if (const StatsRow* s = c.graph().stats(row)) bad += s->non_finite();
  if (bad == 0 || compared == 0) return std::nullopt;
  Finding f;
  f.not_computed = true;
  f.source = "hashes of every output as recorded, against three executions here";
  f.evidence.push_back({"outputs before it that came back bit for bit", std::to_string(compared)});
  f.evidence.push_back({"non-finite elements in its output as recorded", std::to_string(bad)});
  f.evidence.push_back({"non-finite elements in its output here, from the same inputs", "0"});
  f.evidence.push_back({"executions here that agree with each other bit for bit", "3 of 3"});
  f.evidence.push_back(
      {"non-finite elements by another number of threads, and without oneDNN's kernels", "0"});
  f.evidence.push_back({"differences of the environment", "0"});
  f.explanation =
      c.op_text(c.op_index()) + " was recorded with " +
      count_text(static_cast<std::int64_t>(bad), "non-finite element") +
      ", but from the same inputs it gives finite numbers here, three times the same. All " +
      std::to_string(compared) +
      " outputs before it came back bit for bit, and versions, threads and instruction set are the recorded "
      "ones: the machine computed or remembered wrongly.";
  f.advice =
      "Run the step again on this machine; test its memory and processor, and look for corrected errors in "
      "its "
      "logs. Nothing in the program needs to change.";
  f.wanted.push_back(computed_again(c, c.op_index()));
  return f;
}

}  // namespace

NANQUEST_CAUSE(hardware) = {
    .label = Label::hardware,
    .origins = {Origin::op},
    .examine = examine_hardware,
};

}  // namespace nanquest
