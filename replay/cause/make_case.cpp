#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "probe/trace/collectives.h"
#include "probe/trace/culprit.h"
#include "replay/case/values.h"
#include "replay/cause/culprit.h"
#include "replay/cause/diagnose.h"
#include "replay/lab/lab.h"

namespace nanquest {
namespace {

/// True if the experiments show more than the file: not if bad values arrived from another rank, and not if
/// another process's file is needed.
bool is_ours(const SnapshotDoc& doc, const Blame& blame) {
  if (blame.set.empty()) return false;
  const OpRow* op = find_row(doc, blame.set.front().op);
  return op && !is_collective(op->name);
}

}  // namespace

Case make_case(const Replayer& replayer, LabLimits limits, std::shared_ptr<const RunResult> recorded) {
  SnapshotDoc doc = replayer.doc();
  ensure_culprit(doc);
  const auto lab = std::make_shared<Lab>(replayer, limits);
  Blame blame;
  std::shared_ptr<TwinRun> twin;
  const bool silent = doc.culprit.value == "silent";
  if (!doc.culprit.value.empty() && (!silent || doc.twin.step >= 0)) {
    if (recorded)
      lab->took(recorded->seconds);
    else
      recorded = std::make_shared<const RunResult>(lab->run({}));
    twin = std::make_shared<TwinRun>(*lab, *recorded);
    if (!silent) blame = find_blame(*lab, *recorded, twin.get());
  }
  if (is_ours(doc, blame)) blame_suspect(doc, blame.set.front());
  settle_name(doc, [&](const NamedTensor& named) {
    const auto values = replayer.tensor(named.data);
    return values && !all_finite(*values);
  });
  Case made(
      std::move(doc), [lab](const RunOptions& options) { return lab->run(options); },
      [&replayer](const std::string& path) -> std::optional<at::Tensor> {
        auto tensor = replayer.tensor(path);
        if (!tensor) return std::nullopt;
        return std::move(tensor).value();
      });
  made.set_lab(lab);
  if (recorded) made.set_recorded(*recorded);
  made.set_twin(std::move(twin));
  made.set_blame(std::move(blame));
  return made;
}

}  // namespace nanquest
