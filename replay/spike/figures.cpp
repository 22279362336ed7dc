#include "replay/spike/figures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace nanquest {
namespace {

/// The sum of squares of the elements of `row` in the memory of `part`.
double squares_of(const at::Tensor& part, const TensorRow& row) {
  const at::Tensor whole =
      at::empty({0}, part.options()).set_(part.storage(), row.storage_offset, row.sizes, row.strides);
  return whole.to(at::kDouble).square().sum().item<double>();
}

}  // namespace

Measured::Measured(const Replayer& replayer) : replayer_(replayer), graph_(replayer.doc()) {
  const SnapshotDoc& doc = replayer.doc();
  // What other ranks gave to a gradient is as recorded, whatever is changed here.
  norm_known_ = doc.world_size <= 1;
  for (const std::int32_t row : doc.gradients) {
    const SlotId slot = graph_.slot(TensorId{row});
    if (!slot) continue;
    const TraceGraph::Write* last = nullptr;
    for (const TraceGraph::Write& write : graph_.writes(slot))
      if (!graph_.op(write.op).node.empty()) last = &write;
    if (last)
      gradients_[last->op.row()].push_back({static_cast<std::size_t>(last->entry), row});
    else
      norm_known_ = false;
  }
  norm_known_ = norm_known_ && !gradients_.empty();
}

void Measured::watch(RunOptions& options, Tally& tally) const {
  if (!norm_known_) return;
  for (const auto& [op, gradients] : gradients_) {
    auto& hook = options.edit.output_edit[op];
    hook = [this, &tally, &gradients = gradients, before = hook](std::vector<at::Tensor>& written) {
      if (before) before(written);
      try {
        for (const Gradient& gradient : gradients) {
          const bool there = gradient.entry < written.size() && written[gradient.entry].defined();
          if (there)
            tally.squares += squares_of(written[gradient.entry], get(graph_.doc(), TensorId{gradient.row}));
          tally.all = tally.all && there;
        }
      } catch (const std::exception&) {  // not plain memory
        tally.all = false;
      }
    };
  }
}

double Measured::norm(const Tally& tally) const {
  if (!norm_known_ || !tally.all) return std::nan("");
  const double scale = replayer_.doc().loss_scale;
  return std::sqrt(tally.squares) / (scale > 0 && std::isfinite(scale) ? scale : 1);
}

Figures Measured::of(const Run& run, RunOptions options) const {
  Figures figures;
  Tally tally;
  watch(options, tally);
  options.scan = false;
  const RunResult result = run(options);
  if (result.failed > 0) {
    const auto failed = std::find_if(result.ops.begin(), result.ops.end(),
                                     [](const OpOutcome& op) { return !op.ran && !op.error.empty(); });
    figures.failed = failed == result.ops.end() ? "an op could not be run" : failed->error;
    return figures;
  }
  if (graph_.slot(TensorId{replayer_.doc().loss})) figures.loss = result.loss;
  figures.norm = norm(tally);
  return figures;
}

Figures Measured::of(RunOptions options) const {
  return of([this](const RunOptions& each) { return replayer_.run(each); }, std::move(options));
}

}  // namespace nanquest
