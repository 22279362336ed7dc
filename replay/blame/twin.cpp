#include "replay/blame/twin.h"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "probe/tensor/tensor_scan.h"
#include "probe/trace/origins.h"

namespace nanquest {
namespace {

bool no_more(const StatsRow& here, const StatsRow& in_health) {
  return here.nan <= in_health.nan && here.pos_inf <= in_health.pos_inf && here.neg_inf <= in_health.neg_inf;
}

}  // namespace

TwinRun::TwinRun(Lab& lab, const RunResult& recorded)
    : lab_(lab),
      harm_(lab.graph(), recorded),
      failed_(recorded.failed),
      harm_in_results_(!recorded.loss_finite || !recorded.gradients_finite) {}

std::optional<at::Tensor> TwinRun::values_of(SlotId slot) const {
  for (const TwinValue& value : lab_.replayer().doc().twin.values) {
    if (value.slot != slot.row()) continue;
    auto stored = lab_.replayer().tensor(value.data);
    if (stored) return std::move(stored).value();
  }
  return std::nullopt;
}

bool TwinRun::put(TraceEdit& edit, SlotId except) const {
  for (const TwinValue& value : lab_.replayer().doc().twin.values) {
    if (value.slot != kNone && SlotId{value.slot} == except) continue;
    auto stored = lab_.replayer().tensor(value.data);
    if (!stored) return false;
    const auto fill = [bytes = std::move(stored).value()](const at::Tensor& to) {
      if (to.numel() != bytes.numel()) throw std::runtime_error("the twin's values don't fit");
      to.copy_(bytes.view(to.sizes()));
    };
    if (value.slot != kNone)
      edit.slot_edit[value.slot] = fill;
    else
      edit.output_edit[value.op] = [fill](std::vector<at::Tensor>& written) {
        if (!written.empty() && written[0].defined()) fill(written[0]);
      };
  }
  return true;
}

bool TwinRun::reaches_harm() const {
  const SnapshotDoc& doc = lab_.replayer().doc();
  return harm_in_results_ || static_cast<std::size_t>(doc.twin.ops) == doc.ops.size();
}

void TwinRun::make_run() {
  made_ = true;
  const SnapshotDoc& doc = lab_.replayer().doc();
  if (!there() || doc.twin.ops == 0 || !lab_.has_time()) return;
  RunOptions options;
  if (static_cast<std::size_t>(doc.twin.ops) < doc.ops.size()) options.stop_after = doc.twin.ops - 1;
  if (!put(options.edit)) return;
  RunResult run = lab_.run(options);
  if (run.failed > failed_) return;
  for (OpId op{0}; op < end(); op = OpId{op.row() + 1})
    if (run.ops[op.index()].substituted && !(lab_.graph().op(op).flags & kOpHostWrite)) return;
  run_ = std::move(run);
}

const RunResult* TwinRun::run() {
  if (!made_) make_run();
  return run_ ? &*run_ : nullptr;
}

TwinRun::Health TwinRun::health() {
  if (!there() || !reaches_harm() || !run()) return Health::unknown;
  return harm_.undone_by(*run()) ? Health::well : Health::harmed;
}

bool TwinRun::outside_in_health(TensorId row) const {
  const TraceGraph& graph = lab_.graph();
  const SlotId slot = graph.slot(row);
  const StatsRow* here = graph.stats(row);
  if (!slot || !here || !comes_with_batch(get(graph.doc(), slot).origin)) return false;
  // The same bytes; or memory that the step writes, which may be state without a name.
  if (!values_of(slot)) return graph.writes(slot).empty();
  const auto in_health = stats_of_outside(row);
  return in_health && no_more(*here, *in_health);
}

std::optional<StatsRow> TwinRun::stats_of_outside(TensorId row) const {
  const TensorRow& shape = lab_.graph().tensor(row);
  const std::optional<at::Tensor> values = values_of(lab_.graph().slot(row));
  if (!values || values->scalar_type() != scalar_type_of(shape.dtype)) return std::nullopt;
  return stats_of(values->as_strided(shape.sizes, shape.strides, shape.storage_offset), /*hash=*/false);
}

bool TwinRun::has_it_in_health(const Suspect& suspect) {
  if (suspect.hidden || health() != Health::well || !(suspect.op < end())) return false;
  if (suspect.row) return outside_in_health(suspect.row);
  const TraceGraph& graph = lab_.graph();
  const std::vector<StatsRow>& in_health = run()->ops[suspect.op.index()].written;
  std::size_t entry = 0;
  bool any = false;
  for (const TensorId row : graph.written(suspect.op)) {
    const StatsRow* here = graph.stats(row);
    const std::size_t at = entry++;
    if (!here || here->non_finite() == 0) continue;
    if (at >= in_health.size() || !no_more(*here, in_health[at])) return false;
    any = true;
  }
  return any;
}

}  // namespace nanquest
