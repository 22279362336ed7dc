#include <algorithm>

#include "replay/trace/environment.h"
#include "replay/trace/fill.h"
#include "replay/trace/impl.h"

namespace nanquest {
namespace {

/// Recorded statistics of a tensor row; null if its hash was not recorded.
const StatsRow* recorded_stats(const SnapshotDoc& doc, std::int32_t row) {
  if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size()) return nullptr;
  const std::int32_t stats = doc.tensors[static_cast<std::size_t>(row)].stats;
  if (stats < 0 || static_cast<std::size_t>(stats) >= doc.stats.size()) return nullptr;
  const StatsRow& found = doc.stats[static_cast<std::size_t>(stats)];
  return found.has_hash ? &found : nullptr;
}

/// The same of a `written` entry of an op.
const StatsRow* recorded_stats(const SnapshotDoc& doc, const OpRow& op, std::size_t entry) {
  const std::size_t index = static_cast<std::size_t>(op.first_written) + entry;
  if (op.first_written < 0 || index >= doc.written.size()) return nullptr;
  return recorded_stats(doc, doc.written[index]);
}

bool has_hashes(const SnapshotDoc& doc) {
  for (const OpRow& op : doc.ops) {
    if (op.flags & kOpHostWrite) continue;
    for (std::size_t i = 0; i < static_cast<std::size_t>(std::max(op.written_count, 0)); ++i)
      if (recorded_stats(doc, op, i)) return true;
  }
  return false;
}

void compare_op(const SnapshotDoc& doc, std::int32_t index, const OpOutcome& outcome, VerifyResult& result) {
  const OpRow& op = doc.ops[static_cast<std::size_t>(index)];
  if (op.flags & (kOpUninitialised | kOpFailed)) return;  // nobody wrote there, or nothing came out
  if (outcome.substituted) return;                        // what was recorded, by definition
  bool differs = false;
  for (std::size_t i = 0; i < static_cast<std::size_t>(std::max(op.written_count, 0)); ++i) {
    const StatsRow* recorded = recorded_stats(doc, op, i);
    if (!recorded) continue;
    ++result.outputs_compared;
    const bool equal = i < outcome.written.size() && outcome.written[i].has_hash &&
                       outcome.written[i].hash == recorded->hash;
    if (equal) continue;
    ++result.mismatched;
    differs = true;
  }
  if (differs && result.first_mismatch == kNone) result.first_mismatch = index;
}

/// The last op that wrote the row's storage.
std::int32_t last_writer(const SnapshotDoc& doc, const trace::TracePlan& plan, std::int32_t row) {
  const std::int32_t slot = doc.tensors[static_cast<std::size_t>(row)].slot;
  for (std::size_t i = plan.ops.size(); i-- > 0;)
    for (const std::int32_t written : plan.ops[i].written)
      if (written != kNone && doc.tensors[static_cast<std::size_t>(written)].slot == slot)
        return static_cast<std::int32_t>(i);
  return kNone;
}

/// What was alive when the step was recorded, against what the run has in the same place at its end.
void compare_survivors(const Replayer::Impl& impl, trace::Run& run, VerifyResult& result) {
  const SnapshotDoc& doc = impl.recorded();
  std::vector<std::int32_t> rows = doc.gradients;
  rows.insert(rows.begin(), doc.loss);
  for (const std::int32_t row : rows) {
    const StatsRow* recorded = recorded_stats(doc, row);
    if (!recorded) continue;
    ++result.outputs_compared;
    StatsRow now;
    try {
      now = trace::measure(run.value(row), false, true, doc.hash_kind);
    } catch (const std::exception&) {  // what can't be seen isn't equal
    }
    if (now.has_hash && now.hash == recorded->hash) continue;
    ++result.mismatched;
    const std::int32_t writer = last_writer(doc, impl.plan, row);
    if (writer != kNone && (result.first_mismatch == kNone || writer < result.first_mismatch))
      result.first_mismatch = writer;
  }
}

}  // namespace

VerifyResult verify(const Replayer& replayer) {
  const Replayer::Impl& impl = replayer.impl();
  const SnapshotDoc& doc = impl.recorded();
  VerifyResult result;
  const bool survivors = doc.basis == "survivors" || lacks_statistics(doc);
  // Memory that the step wrote last and that was alive at its end has its hash where it was written.
  const bool hashes = !survivors || has_hashes(doc);
  result.basis = survivors ? "survivors" : doc.basis;
  result.differences = trace::environment_differences(doc);
  RunOptions options;
  options.scan = false;
  options.hash = hashes;
  const RunResult run = impl.run(options, [&](trace::Run& ended) {
    if (survivors) compare_survivors(impl, ended, result);
  });
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    if ((doc.ops[i].flags & kOpOpaque) || run.ops[i].substituted) ++result.opaque_ops;
    const bool compared = hashes && !(survivors && (doc.ops[i].flags & kOpHostWrite));
    if (compared) compare_op(doc, static_cast<std::int32_t>(i), run.ops[i], result);
  }
  result.failed_ops = run.failed;
  result.bit_exact = result.outputs_compared > 0 && result.mismatched == 0 && run.failed == 0;
  result.seconds = run.seconds;
  return result;
}

}  // namespace nanquest
