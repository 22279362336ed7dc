#include "probe/attach/step_graph.h"

#include <algorithm>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::attach {

StepGraph::StepGraph(Rounds& rounds, const Names& names, const NamedList& batch, const RoundResults& results)
    : step_(*rounds.now()),
      names_(names),
      tables_(rounds.tables(*rounds.now(), names, batch, results, named_)),
      graph_(tables_->recording.doc) {}

SlotId StepGraph::slot(const c10::StorageImpl* memory) const {
  const std::uint32_t slot = step_.slots.find(memory);
  return slot == record::SlotIndex::kMissing ? SlotId{} : SlotId{slot};
}

SlotId StepGraph::slot(const at::Tensor& tensor) const {
  if (!tensor.defined() || !is_plain(tensor)) return {};
  return slot(tensor.storage().unsafeGetStorageImpl());
}

std::vector<SlotId> StepGraph::slots(const NamedList& list) const {
  std::vector<SlotId> found;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const SlotId each = slot(list.tensor(i).address())) found.push_back(each);
  return found;
}

std::vector<SlotId> StepGraph::state() const {
  std::vector<SlotId> found;
  for (const auto& [list, word] : names_.state())
    for (const SlotId each : slots(*list)) found.push_back(each);
  return found;
}

bool StepGraph::harms(const std::vector<SlotId>& from) const {
  const SlotSet reached = reached_by(graph_, from, first());
  const SnapshotDoc& doc = graph_.doc();
  const auto hit = [&](std::int32_t row) {
    const SlotId there = row == kNone ? SlotId{} : graph_.slot(TensorId{row});
    return there && reached[there];
  };
  if (hit(doc.loss) || std::any_of(doc.gradients.begin(), doc.gradients.end(), hit)) return true;
  for (const NamedList* list : {&names_.parameters, &names_.states})
    for (const SlotId each : slots(*list))
      if (reached[each] && !graph_.writes(each).empty()) return true;
  return false;
}

}  // namespace nanquest::attach
