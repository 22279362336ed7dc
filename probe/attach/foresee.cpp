// How far values reach, and which places are about to leave their format's range.
#include <algorithm>
#include <cmath>

#include "probe/attach/session.h"
#include "probe/trace/saturation.h"

namespace nanquest::attach {
namespace {

/// Whether an overflow at this place would do no harm, as far as the step shows.
bool would_be_harmless(const StepGraph& step, const record::RangePlace& place) {
  const TraceGraph& graph = step.graph();
  const SnapshotDoc& doc = graph.doc();
  bool any = false;
  for (const OpId id : graph.ops()) {
    const OpRow& op = graph.op(id);
    const std::string path = op.module == kNone ? "" : doc.modules[static_cast<std::size_t>(op.module)].path;
    const auto written = graph.written(id);
    const bool writes_the_type = std::any_of(written.begin(), written.end(), [&](TensorId row) {
      return row && graph.tensor(row).dtype == place.type;
    });
    if (op.name != place.op->name || op.phase != place.phase || !writes_the_type ||
        path != (place.module ? place.module->path : ""))
      continue;
    any = true;
    if (!only_saturates(graph, id)) return false;
  }
  return any;
}

}  // namespace

void AttachSession::foresee(StepAnswer& answer) {
  if (!options_.forecast || !rounds_->now()) return;
  Recorder& recorder = rounds_->recorder();
  std::vector<record::SeenRange> seen = recorder.ranges();
  if (trace_.watched) add_text(answer.told, ranges_.take(step(), seen));
  // Scaled gradients leave fp16 on purpose: the loss scale grows until they do.
  std::erase_if(seen, [&](const record::SeenRange& range) {
    return range.place.phase != Phase::forward && loss_scale_ != 1;
  });
  const auto found = forecast_.take(step(), seen, trace_.watched, [&](const record::RangePlace& place) {
    return would_be_harmless(StepGraph(*rounds_, tensors_.names(), batch_, {}), place);
  });
  recorder.look_at(forecast_.due(step() + 1) ? forecast_.nearest() : std::vector<record::RangePlace>());
  if (!found) return;
  answer.forecast = true;
  answer.told.push_back({.kind = Fact::forecast, .name = found->text(), .step = found->step});
  const Reach& reach = found->reach;
  (void)log_.forecast({found->step, 0, found->text(), found->place.text(), found->bits, reach.steps,
                       reach.earliest, std::isfinite(reach.latest) ? reach.latest : -1});
}

}  // namespace nanquest::attach
