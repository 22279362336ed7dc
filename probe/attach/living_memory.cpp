#include "probe/attach/living_memory.h"

#include <algorithm>

#include "probe/trace/flow.h"

namespace nanquest::attach {
namespace {

/// So many tensors in vain, and nobody asks any more whose they are.
constexpr int kMostStrangers = 64;

const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.defined() && tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

std::string with_word(const char* word, const std::string& name) {
  return std::string(word) + " " + name;
}

bool holds(const StateCheck::Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

NamedTensors LivingMemory::written(Recorder& recorder, std::size_t first, bool weights_too) const {
  NamedTensors found;
  const Names& names = tensors_.names();
  for (const auto& [list, word] : names.state()) {
    if (!weights_too && (list == &names.parameters || list == &names.states)) continue;
    for (std::size_t i = 0; i < list->size(); ++i)
      if (recorder.wrote(list->tensor(i).address(), first))
        found.emplace_back(with_word(word, list->name(i)), list->tensor(i).lock());
  }
  return found;
}

std::vector<record::Survivor> LivingMemory::strangers(Recorder& recorder, std::size_t first) const {
  std::vector<record::Survivor> all = recorder.survivors(first);
  const Names& names = tensors_.names();
  std::erase_if(all, [&](const record::Survivor& each) {
    const c10::StorageImpl* const storage = storage_of(each.memory);
    if (names.scales.any_in(storage) || batch_.any_in(storage)) return true;
    for (const auto& [list, word] : names.state())
      if (list->any_in(storage)) return true;
    const auto& weights = gate_.parameters();
    return std::any_of(weights.begin(), weights.end(), [&](const at::Tensor& weight) {
      return weight.defined() && storage_of(weight.grad()) == storage;
    });
  });
  return all;
}

bool LivingMemory::asks_owners() const {
  return find_owner_ && in_vain_ < kMostStrangers;
}

Owner LivingMemory::owner_of(const at::Tensor& memory) {
  Owner owner = find_owner_(memory.storage());
  if (owner.kind == Owner::Kind::nobody || owner.kind == Owner::Kind::gradient) ++in_vain_;
  return owner;
}

std::string LivingMemory::adopt(const Owner& owner, const at::Tensor& memory) {
  tensors_.put("kept", owner.name, memory);
  return with_word(StateCheck::kKept, owner.name);
}

NamedTensors LivingMemory::strangers_spoiled_by_passes(Rounds& rounds, std::int64_t step,
                                                       const Results& results) {
  if (!asks_owners()) return {};
  NamedTensors looked_at;
  for (const record::Survivor& each : strangers(rounds.recorder(), 0))
    if (each.outside) looked_at.emplace_back("", each.memory);
  const NamedTensors bad = check_.spoiled(rounds.recorder(), looked_at, step, {.always = true});
  if (bad.empty()) return {};
  const StepGraph recorded(rounds, tensors_.names(), batch_, results());
  NamedTensors found;
  for (const auto& [none, memory] : bad) {
    const SlotId slot = recorded.slot(storage_of(memory));
    if (!old_value_used(recorded.graph(), slot)) continue;
    const Owner owner = owner_of(memory);
    if (owner.kind == Owner::Kind::model || (owner.kind == Owner::Kind::variable && recorded.harms({slot})))
      found.emplace_back(adopt(owner, memory), memory);
  }
  return found;
}

NamedTensors LivingMemory::spoiled_by_passes(Rounds& rounds, std::int64_t step, bool left_out,
                                             const Results& results) {
  NamedTensors bad = check_.spoiled(rounds.recorder(), written(rounds.recorder(), 0, /*weights_too=*/false),
                                    step, {.always = left_out});
  if (left_out)
    for (auto& each : strangers_spoiled_by_passes(rounds, step, results)) bad.push_back(std::move(each));
  return bad;
}

NamedTensors LivingMemory::strangers_spoiled_between(Rounds& rounds, std::int64_t step, std::size_t first) {
  if (!asks_owners()) return {};
  NamedTensors looked_at;
  for (const record::Survivor& each : strangers(rounds.recorder(), first))
    looked_at.emplace_back("", each.memory);
  const NamedTensors bad = check_.spoiled(rounds.recorder(), looked_at, step, {.first = first});
  if (bad.empty()) return {};
  const StepGraph recorded(rounds, tensors_.names(), batch_, {});
  const SlotSet of_state = reached_by(recorded.graph(), recorded.state(), OpId{first});
  NamedTensors found;
  for (const auto& [none, memory] : bad) {
    const std::uint32_t slot = recorded.step().slots.find(storage_of(memory));
    const Owner owner = owner_of(memory);
    const bool lives = owner.kind == Owner::Kind::model ||
                       (owner.kind == Owner::Kind::variable && !recorded.step().slots[slot].produced &&
                        memory.numel() > 1 && of_state[SlotId{slot}]);
    if (lives)
      found.emplace_back(adopt(owner, memory), memory);
    else
      ++in_vain_;
  }
  return found;
}

NamedTensors LivingMemory::spoiled_between(Rounds& rounds, std::int64_t step, std::size_t first) {
  NamedTensors bad = check_.spoiled(
      rounds.recorder(), written(rounds.recorder(), first, /*weights_too=*/true), step, {.first = first});
  for (auto& each : strangers_spoiled_between(rounds, step, first)) bad.push_back(std::move(each));
  if (bad.empty()) return {};
  const StateCheck::Names known = check_.bad_now();
  const StepGraph recorded(rounds, tensors_.names(), batch_, {});
  std::vector<SlotId> from;
  for (const auto& [list, word] : tensors_.names().state())
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string name = with_word(word, list->name(i));
      const bool fresh =
          std::any_of(bad.begin(), bad.end(), [&](const auto& each) { return each.first == name; });
      if (fresh || !holds(known, name)) continue;
      if (const SlotId slot = recorded.slot(list->tensor(i).address())) from.push_back(slot);
    }
  const SlotSet copied = reached_by(recorded.graph(), from, OpId{first});
  StateCheck::Names copies;
  std::erase_if(bad, [&](const auto& each) {
    const SlotId slot = recorded.slot(storage_of(each.second));
    if (!slot || !copied[slot]) return false;
    copies.push_back(each.first);
    return true;
  });
  check_.left_behind(copies);
  return bad;
}

bool LivingMemory::damage_matters(const std::function<const StepGraph*()>& step) const {
  const StateCheck::Names left = check_.left_of(check_.bad_now());
  std::vector<const c10::StorageImpl*> storages;
  for (const auto& [list, word] : tensors_.names().state())
    for (std::size_t i = 0; i < list->size(); ++i)
      if (holds(left, with_word(word, list->name(i)))) storages.push_back(list->tensor(i).address());
  const auto& trained = gate_.parameters();
  for (const c10::StorageImpl* storage : storages)
    if (std::any_of(trained.begin(), trained.end(),
                    [&](const at::Tensor& weight) { return storage_of(weight) == storage; }))
      return true;
  const StepGraph* const recorded = step();
  if (!recorded) return true;
  std::vector<SlotId> from;
  for (const c10::StorageImpl* storage : storages)
    if (const SlotId slot = recorded->slot(storage)) from.push_back(slot);
  return !from.empty() && recorded->harms(from);
}

void LivingMemory::take_over_names() {
  const NamedList& kept = tensors_.names().kept;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (!kept.tensor(i).alive() || check_.left_of({with_word(StateCheck::kKept, kept.name(i))}).empty())
      continue;
    for (const auto& [list, word] : tensors_.names().state())
      for (std::size_t j = 0; j < list->size(); ++j)
        if (list->tensor(j).lies_in(kept.tensor(i).address()))
          check_.left_behind({with_word(word, list->name(j))});
  }
}

}  // namespace nanquest::attach
