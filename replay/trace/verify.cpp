#include <algorithm>

#include "replay/trace/environment.h"
#include "replay/trace/replayer.h"

namespace nanquest {
namespace {

/// Recorded statistics of a `written` entry of an op; null if its hash was not recorded.
const StatsRow* recorded_stats(const SnapshotDoc& doc, const OpRow& op, std::size_t entry) {
  const std::size_t index = static_cast<std::size_t>(op.first_written) + entry;
  if (op.first_written < 0 || index >= doc.written.size()) return nullptr;
  const std::int32_t row = doc.written[index];
  if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size()) return nullptr;
  const std::int32_t stats = doc.tensors[static_cast<std::size_t>(row)].stats;
  if (stats < 0 || static_cast<std::size_t>(stats) >= doc.stats.size()) return nullptr;
  const StatsRow& found = doc.stats[static_cast<std::size_t>(stats)];
  return found.has_hash ? &found : nullptr;
}

void compare_op(const SnapshotDoc& doc, std::int32_t index, const OpOutcome& outcome, VerifyResult& result) {
  const OpRow& op = doc.ops[static_cast<std::size_t>(index)];
  if (op.flags & (kOpUninitialised | kOpFailed)) return;  // nobody wrote there, or nothing came out
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

}  // namespace

VerifyResult verify(const Replayer& replayer) {
  const SnapshotDoc& doc = replayer.doc();
  VerifyResult result;
  result.basis = doc.basis;
  result.differences = trace::environment_differences(doc);
  RunOptions options;
  options.scan = false;
  options.hash = true;
  const RunResult run = replayer.run(options);
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    if (doc.ops[i].flags & kOpOpaque) ++result.opaque_ops;
    compare_op(doc, static_cast<std::int32_t>(i), run.ops[i], result);
  }
  result.failed_ops = run.failed;
  result.bit_exact = result.outputs_compared > 0 && result.mismatched == 0 && run.failed == 0;
  result.seconds = run.seconds;
  return result;
}

}  // namespace nanquest
