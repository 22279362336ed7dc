#include "replay/audit/audit.h"

#include "replay/case/repeatable.h"
#include "replay/trace/environment.h"

namespace nanquest {
namespace {

constexpr double kSecondsForBits = 20;

/// The entry of what `op` wrote that has another hash than recorded; -1 if there is none.
std::int32_t differing_entry(const TraceGraph& graph, OpId op, const OpOutcome& outcome) {
  const auto rows = graph.written(op);
  for (std::size_t i = 0; i < rows.size() && i < outcome.written.size(); ++i)
    if (const StatsRow* recorded = rows[i] ? graph.stats(rows[i]) : nullptr;
        recorded && recorded->has_hash && outcome.written[i].has_hash &&
        recorded->hash != outcome.written[i].hash)
      return static_cast<std::int32_t>(i);
  return -1;
}

class Auditor {
 public:
  explicit Auditor(const Replayer& replayer) : replayer_(replayer), graph_(replayer.doc()) {}

  Audit result() && {
    const SnapshotDoc& doc = replayer_.doc();
    result_.step = doc.step, result_.rank = doc.rank, result_.world_size = doc.world_size;
    const VerifyResult verified = verify(replayer_);
    result_.compared = verified.outputs_compared, result_.differ = verified.mismatched;
    result_.seconds = verified.seconds;
    if (verified.first_mismatch != kNone) {
      result_.op = OpId{verified.first_mismatch};
      result_.op_name = graph_.op(result_.op).name, result_.module = graph_.module_of(result_.op);
    }
    if (verified.bit_exact)
      result_.answer = AuditAnswer::same;
    else if (result_.why = why_not_comparable(verified); result_.why.empty())
      result_.why = other_explanation();
    if (!verified.bit_exact && result_.why.empty()) result_.answer = AuditAnswer::hardware;
    return std::move(result_);
  }

 private:
  std::string why_not_comparable(const VerifyResult& v) const {
    if (v.recorded_on != "cpu")
      return "it was recorded on " + v.recorded_on + ", whose kernels a CPU does not have";
    if (v.outputs_compared == 0) return "the file holds no hashes";
    if (v.failed_ops > 0) return std::to_string(v.failed_ops) + " operations can't be run here";
    if (v.basis != "every_output" || !result_.op) return "the file does not hold the hashes of every output";
    if (!v.differences.empty()) return "another environment: " + v.differences.front();
    if (!is_repeatable(graph_.op(result_.op))) return "this operation need not give the same bits twice";
    if (reads_shared_memory(graph_, result_.op)) return "others may have written what it reads meanwhile";
    return "";
  }

  RunResult run(RunOptions options) const {
    options.hash = true;
    options.stop_after = result_.op.row();
    return replayer_.run(options);
  }

  /// Anything but the machine that explains the difference, "" if nothing does.
  std::string other_explanation() {
    at::Tensor value;
    for (int i = 0; i < 3; ++i) {
      RunOptions options;
      options.edit.output_edit[result_.op.row()] = [&](std::vector<at::Tensor>& written) {
        const auto entry = static_cast<std::size_t>(result_.entry);
        if (i > 0 && entry < written.size() && written[entry].defined()) value = written[entry].clone();
      };
      const RunResult again = run(options);
      const OpOutcome& outcome = again.ops[result_.op.index()];
      const std::int32_t entry = differing_entry(graph_, result_.op, outcome);
      if (entry < 0) return "this operation gives the recorded bits when it runs once more";
      const std::uint64_t hash = outcome.written[static_cast<std::size_t>(entry)].hash;
      if (i == 0)
        result_.entry = entry, first_hash_ = hash;
      else if (hash != first_hash_)
        return "this operation gives other bits each time it runs here";
    }
    for (const bool threads : {true, false}) {
      const RunResult other =
          computed_otherwise([&](const RunOptions& o) { return run(o); }, result_.op, threads);
      if (differing_entry(graph_, result_.op, other.ops[result_.op.index()]) < 0)
        return threads ? "with another number of threads it gives the recorded bits"
                       : "with other kernels it gives the recorded bits";
    }
    const TensorId row = graph_.written(result_.op)[static_cast<std::size_t>(result_.entry)];
    result_.sizes = graph_.tensor(row).sizes;
    result_.bit = find_flipped_bit(value, graph_.stats(row)->hash, kSecondsForBits);
    return "";
  }

  const Replayer& replayer_;
  TraceGraph graph_;
  std::uint64_t first_hash_ = 0;
  Audit result_;
};

}  // namespace

Audit audit(const Replayer& replayer) {
  return Auditor(replayer).result();
}

}  // namespace nanquest
