#include "replay/rewind/tape_updates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "replay/trace/watch.h"

namespace nanquest {
namespace {

/// "aten::copy_" and similar ops: a weight gets what another memory holds.
bool copies(const OpRow& op) {
  return op.name == "aten::copy_" || op.name == "aten::_foreach_copy_";
}

std::string name_of(const SnapshotDoc& doc, std::int32_t slot) {
  const std::string& name = doc.slots[static_cast<std::size_t>(slot)].name;
  return name.empty() ? "a weight" : name;
}

}  // namespace

TapeUpdates::TapeUpdates(const Replayer& replayer, const TraceGraph& graph, bool shortens, bool all, Bad bad)
    : replayer_(replayer), graph_(graph), shortens_(shortens), all_(all), bad_(std::move(bad)) {
  const std::vector<Slot>& slots = graph.doc().slots;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (slots[i].origin == SlotOrigin::parameter && dtype_is_float(slots[i].dtype))
      weights_.push_back(static_cast<std::int32_t>(i));
}

Status TapeUpdates::watch(const TapeStep& step, double share, TapeHooks& hooks) {
  bool any = false;
  for (const std::int32_t slot : weights_) {
    const std::vector<TraceGraph::Write>& writes = graph_.writes(SlotId{slot});
    const auto from = [&](auto begin, std::int32_t op) {
      return std::lower_bound(begin, writes.end(), op,
                              [](const auto& write, std::int32_t at) { return write.op.row() < at; });
    };
    const auto begin = from(writes.begin(), step.gate), end = from(begin, step.end);
    if (begin == end) continue;
    any = true;
    const TraceGraph::Write last = *std::prev(end);
    const bool copied = copies(graph_.op(last.op));
    if (all_ && copied)
      return Error{ErrorCode::unsupported,
                   "the weights are copies of others, which the tape does not know as such", ""};
    const auto entry = static_cast<std::size_t>(last.entry);
    hooks.after(last.op.row(), [this, number = step.step, slot, entry, share, copied](auto& written) {
      if (entry >= written.size() || !written[entry].defined()) return;
      at::Tensor weight = whole_memory(written[entry]);
      if (shortens_ && !copied) shorten(slot, weight, share);
      if (trace::badness(weight).any)
        bad_(number, "the update made " + name_of(graph_.doc(), slot) + " non-finite");
    });
  }
  if (any) ++count_;
  return {};
}

void TapeUpdates::keep(std::span<const OutsideWrite> others, TapeHooks& hooks) {
  for (const OutsideWrite& other : others)
    if (std::binary_search(weights_.begin(), weights_.end(), other.slot.row()))
      hooks.after(other.write.op.row(), [this, slot = other.slot.row(),
                                         entry = static_cast<std::size_t>(other.write.entry)](auto& written) {
        if (entry < written.size() && written[entry].defined())
          before_[slot] = whole_memory(written[entry]).clone();
      });
}

void TapeUpdates::shorten(std::int32_t slot, at::Tensor& weight, double share) {
  at::Tensor& before = before_[slot];
  if (!before.defined()) {
    Result<at::Tensor> first = replayer_.tensor(graph_.doc().slots[static_cast<std::size_t>(slot)].data);
    if (!first) throw std::runtime_error(first.error().text());
    before = first->to(weight.device()).reshape({-1});
  }
  if (share != 1) {
    const at::ScalarType wide = at::promote_types(weight.scalar_type(), at::kFloat);
    weight.copy_(at::lerp(before.to(wide), weight.to(wide), share));
  }
  before = weight.clone();
}

}  // namespace nanquest
