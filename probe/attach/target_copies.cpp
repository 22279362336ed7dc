#include "probe/attach/target_copies.h"

#include <utility>

#include "probe/observe/memory_of.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/observer.h"
#include "probe/observe/step_scope.h"

namespace nanquest::attach {

void TargetCopies::computes_with(const std::vector<at::Tensor>& weights) {
  for (const at::Tensor& weight : weights)
    targets_.insert_or_assign(weight.storage().unsafeGetStorageImpl(), WeakTensor(weight));
}

void TargetCopies::are_held(const std::vector<at::Tensor>& weights) {
  if (targets_.empty()) return;
  for (const at::Tensor& weight : weights)
    if (weight.has_storage()) targets_.erase(weight.storage().unsafeGetStorageImpl());
}

void TargetCopies::overwritten(const c10::StorageImpl* memory) {
  if (!memory || seen_ == Seen::held) return;
  if (const auto target = targets_.find(memory); target != targets_.end() && target->second.alive())
    seen_ = Seen::target;
  else if (tensors_.is_weight(memory))
    seen_ = Seen::held;
}

void TargetCopies::sees(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (targets_.empty() || inputs.empty() || !op.argument_overwritten[0]) return;
  if (current_phase() != Phase::forward || current_module() || current_node().in_backward) return;
  overwritten(memory_of(inputs[0]));
}

void TargetCopies::overwritten(const std::vector<at::Tensor>& weights) {
  for (const at::Tensor& weight : weights)
    if (weight.has_storage()) overwritten(weight.storage().unsafeGetStorageImpl());
}

bool TargetCopies::take() {
  return std::exchange(seen_, Seen::nothing) == Seen::target;
}

}  // namespace nanquest::attach
