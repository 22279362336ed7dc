// HARDWARE: the same inputs gave other outputs on a second execution. Proof: of all ops the culprit is the
// first whose recorded output has another hash than the replay's; everything before it came back bit for bit;
// it was not finite when recorded and is finite here; here it gives the same bits three times; the
// environment is the recorded one; and it does not go bad with other thread counts or kernels. Claimed for
// deterministic ops on the CPU only: what other kernels, versions, thread counts or random numbers could
// explain is no fault of the machine.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <set>

#include "probe/trace/births.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/trace/environment.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Ops that add up in the order in which threads arrive.
bool is_nondeterministic(const std::string& op) {
  static const std::set<std::string> names = {"index_add",
                                              "scatter_add",
                                              "scatter_reduce",
                                              "index_put",
                                              "put",
                                              "_index_put_impl",
                                              "embedding_dense_backward",
                                              "bincount",
                                              "histc",
                                              "index_reduce",
                                              "_embedding_bag_dense_backward",
                                              "cumsum"};
  return names.count(op) > 0;
}

/// Hashes of what each op wrote, up to the culprit.
RunResult hashed(const Case& c) {
  RunOptions options;
  options.hash = true;
  options.stop_after = c.op_index();
  return c.run(options);
}

/// The same with only the culprit computed another way: by another number of threads, or without oneDNN's
/// kernels.
RunResult computed_otherwise(const Case& c, bool threads) {
  at::Context& context = at::globalContext();
  const bool enabled = context.userEnabledMkldnn();
  RunOptions options;
  options.stop_after = c.op_index();
  options.edit.op_edit[c.op_index()] = [&](std::vector<c10::IValue>&) {
    if (threads)
      at::set_num_threads(at::get_num_threads() == 1 ? 2 : 1);
    else
      context.setUserEnabledMkldnn(false);
    return false;
  };
  RunResult run = c.run(options);
  context.setUserEnabledMkldnn(enabled);
  return run;
}

bool gives_bad_values(const RunResult& run, OpId op) {
  const std::vector<StatsRow>& written = run.ops[op.index()].written;
  return std::any_of(written.begin(), written.end(), [](const StatsRow& s) { return s.non_finite() > 0; });
}

enum class Likeness { equal, other, unknown };

Likeness compare(const Case& c, OpId op, const OpOutcome& outcome) {
  const auto rows = c.graph().written(op);
  Likeness result = Likeness::unknown;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const StatsRow* recorded = rows[i] ? c.graph().stats(rows[i]) : nullptr;
    if (!recorded || !recorded->has_hash || i >= outcome.written.size() || !outcome.written[i].has_hash)
      continue;
    if (recorded->hash != outcome.written[i].hash) return Likeness::other;
    result = Likeness::equal;
  }
  return result;
}

/// The op reads memory that may be written while it runs: a batch, or memory without a name.
bool reads_shared_memory(const Case& c) {
  const auto arguments = c.tensor_arguments(c.op_index());
  return std::any_of(arguments.begin(), arguments.end(), [&](const Case::TensorArgument& a) {
    const SlotId slot = c.graph().slot(TensorId{a.tensor});
    if (!slot || c.producer(a.tensor, c.op_index()) != kNone) return false;
    const SlotOrigin origin = get(c.doc(), slot).origin;
    return origin == SlotOrigin::input || origin == SlotOrigin::external;
  });
}

std::optional<Finding> examine_hardware(const Case& c, const Subject&) {
  const OpRow* op = c.op();
  if (!op || !follows_from_inputs(op->flags) || !op->name.starts_with("aten::") ||
      is_nondeterministic(plain_name(*op)) || c.doc().basis != "every_output" ||
      c.doc().hash_kind != HashKind::contents || c.doc().environment.empty())
    return std::nullopt;
  for (const Slot& slot : c.doc().slots)
    if (slot.device != "cpu") return std::nullopt;
  if (reads_shared_memory(c)) return std::nullopt;
  if (!trace::environment_differences(c.doc()).empty()) return std::nullopt;
  const OpId culprit{c.op_index()};
  const RunResult runs[] = {hashed(c), hashed(c), hashed(c)};
  std::int64_t compared = 0;
  for (const OpId before : c.graph().ops()) {
    if (!(before < culprit)) break;
    if (c.graph().op(before).flags & kOpUninitialised) continue;
    const Likeness likeness = compare(c, before, runs[0].ops[before.index()]);
    if (likeness == Likeness::other) return std::nullopt;
    compared += likeness == Likeness::equal;
  }
  std::uint64_t bad = 0;
  for (const RunResult& run : runs) {
    const OpOutcome& outcome = run.ops[culprit.index()];
    if (compare(c, culprit, outcome) != Likeness::other || outcome.substituted) return std::nullopt;
    for (std::size_t i = 0; i < outcome.written.size(); ++i) {
      if (outcome.written[i].hash != runs[0].ops[culprit.index()].written[i].hash) return std::nullopt;
    }
    if (gives_bad_values(run, culprit)) return std::nullopt;
  }
  // A kernel that fails with some ways of splitting the work is no fault of the machine.
  for (const bool threads : {true, false})
    if (gives_bad_values(computed_otherwise(c, threads), culprit)) return std::nullopt;
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
