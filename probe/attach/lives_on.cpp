// What outlives a step, wherever the program keeps it: what of it a step has spoiled, and what comes of that.
#include <algorithm>
#include <utility>

#include "probe/attach/pages.h"
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

}  // namespace

NamedTensors AttachSession::state_written(std::size_t first, bool weights_too) {
  NamedTensors written;
  const Names& names = tensors_.names();
  for (const auto& [list, word] : names.state()) {
    if (!weights_too && (list == &names.parameters || list == &names.states)) continue;
    for (std::size_t i = 0; i < list->size(); ++i)
      if (rounds_->recorder().wrote(list->tensor(i).address(), first))
        written.emplace_back(with_word(word, list->name(i)), list->tensor(i).lock());
  }
  return written;
}

std::vector<record::Survivor> AttachSession::strangers(std::size_t first) {
  std::vector<record::Survivor> all = rounds_->recorder().survivors(first);
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

std::vector<SlotId> AttachSession::slots_of(const record::Step& step, const NamedList& list) const {
  std::vector<SlotId> slots;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const std::uint32_t slot = step.slots.find(list.tensor(i).address());
        slot != record::SlotIndex::kMissing)
      slots.push_back(SlotId{slot});
  return slots;
}

/// Of a bad pass: what carries an old value on, and gets into gradients or loss, or belongs to a module.
NamedTensors AttachSession::strangers_spoiled_by_passes() {
  if (!find_owner_ || in_vain_ >= kMostStrangers) return {};
  NamedTensors looked_at;
  for (const record::Survivor& each : strangers(0))
    if (each.outside) looked_at.emplace_back("", each.memory);
  NamedTensors bad = check_.spoiled(rounds_->recorder(), looked_at, step(), {.always = true});
  if (bad.empty()) return {};
  record::Step& recorded = *rounds_->now();
  StepNames named;
  const StepTables tables = rounds_->tables(recorded, tensors_.names(), batch_, computed(), named);
  const TraceGraph graph(tables.recording.doc);
  NamedTensors found;
  for (const auto& [none, memory] : bad) {
    const SlotId slot{recorded.slots.find(storage_of(memory))};
    if (!old_value_used(graph, slot)) continue;
    const Owner owner = owner_of(memory);
    const bool harms = owner.kind == Owner::Kind::model ||
                       (owner.kind == Owner::Kind::variable &&
                        reaches_harm(graph, reached_by(graph, {slot}, graph.ops().front()), recorded));
    if (!harms) continue;
    tensors_.put("kept", owner.name, memory);
    found.emplace_back(with_word(StateCheck::kKept, owner.name), memory);
  }
  return found;
}

/// Between an update and the next pass: parts of modules, whoever trains them, and copies or averages of the
/// state.
NamedTensors AttachSession::strangers_spoiled_between() {
  if (!find_owner_ || in_vain_ >= kMostStrangers) return {};
  NamedTensors looked_at;
  for (const record::Survivor& each : strangers(trace_.update_ends)) looked_at.emplace_back("", each.memory);
  NamedTensors bad = check_.spoiled(rounds_->recorder(), looked_at, step(), {.first = trace_.update_ends});
  if (bad.empty()) return {};
  record::Step& recorded = *rounds_->now();
  StepNames named;
  const StepTables tables = rounds_->tables(recorded, tensors_.names(), batch_, {}, named);
  const TraceGraph graph(tables.recording.doc);
  const SlotSet of_state = reached_by(graph, state_slots(recorded), OpId{trace_.update_ends});
  NamedTensors found;
  for (const auto& [none, memory] : bad) {
    const std::uint32_t slot = recorded.slots.find(storage_of(memory));
    const Owner owner = owner_of(memory);
    const bool lives = owner.kind == Owner::Kind::model ||
                       (owner.kind == Owner::Kind::variable && !recorded.slots[slot].produced &&
                        memory.numel() > 1 && of_state[SlotId{slot}]);
    if (!lives) {
      ++in_vain_;
      continue;
    }
    tensors_.put("kept", owner.name, memory);
    found.emplace_back(with_word(StateCheck::kKept, owner.name), memory);
  }
  return found;
}

std::vector<SlotId> AttachSession::state_slots(const record::Step& step) const {
  std::vector<SlotId> slots;
  for (const auto& [list, word] : tensors_.names().state())
    for (const SlotId slot : slots_of(step, *list)) slots.push_back(slot);
  return slots;
}

Owner AttachSession::owner_of(const at::Tensor& memory) {
  Owner owner = find_owner_(memory.storage());
  if (owner.kind == Owner::Kind::nobody || owner.kind == Owner::Kind::gradient) ++in_vain_;
  return owner;
}

bool AttachSession::reaches_harm(const TraceGraph& graph, const SlotSet& reached,
                                 const record::Step& step) const {
  const SnapshotDoc& doc = graph.doc();
  const auto hit = [&](std::int32_t row) {
    const SlotId slot = row == kNone ? SlotId{} : graph.slot(TensorId{row});
    return slot && reached[slot];
  };
  if (hit(doc.loss) || std::any_of(doc.gradients.begin(), doc.gradients.end(), hit)) return true;
  for (const NamedList* list : {&tensors_.names().parameters, &tensors_.names().states})
    for (const SlotId slot : slots_of(step, *list))
      if (reached[slot] && !graph.writes(slot).empty()) return true;
  return false;
}

bool AttachSession::damage_matters(Pages* pages) {
  const StateCheck::Names left = check_.left_of(check_.bad_now());
  std::vector<const c10::StorageImpl*> storages;
  for (const auto& [list, word] : tensors_.names().state())
    for (std::size_t i = 0; i < list->size(); ++i)
      if (std::find(left.begin(), left.end(), with_word(word, list->name(i))) != left.end())
        storages.push_back(list->tensor(i).address());
  const auto& trained = gate_.parameters();
  for (const c10::StorageImpl* storage : storages)
    if (std::any_of(trained.begin(), trained.end(),
                    [&](const at::Tensor& weight) { return storage_of(weight) == storage; }))
      return true;
  if (!pages) return true;
  const TraceGraph graph(pages->doc());
  const record::Step& step = pages->step();
  std::vector<SlotId> from;
  for (const c10::StorageImpl* storage : storages)
    if (const std::uint32_t slot = step.slots.find(storage); slot != record::SlotIndex::kMissing)
      from.push_back(SlotId{slot});
  return !from.empty() && reaches_harm(graph, reached_by(graph, from, graph.ops().front()), step);
}

void AttachSession::take_over_names() {
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

Facts AttachSession::damage_between() {
  NamedTensors bad =
      check_.spoiled(rounds_->recorder(), state_written(trace_.update_ends, /*weights_too=*/true), step(),
                     {.first = trace_.update_ends});
  for (auto& each : strangers_spoiled_between()) bad.push_back(std::move(each));
  if (bad.empty()) return {};
  record::Step& recorded = *rounds_->now();
  // A copy of what is known to be bad is no new damage.
  const StateCheck::Names known = check_.bad_now();
  StepNames named;
  const StepTables tables = rounds_->tables(recorded, tensors_.names(), batch_, {}, named);
  const TraceGraph graph(tables.recording.doc);
  std::vector<SlotId> from;
  for (const auto& [list, word] : tensors_.names().state())
    for (std::size_t i = 0; i < list->size(); ++i) {
      const std::string name = with_word(word, list->name(i));
      const bool fresh =
          std::any_of(bad.begin(), bad.end(), [&](const auto& each) { return each.first == name; });
      if (fresh || std::find(known.begin(), known.end(), name) == known.end()) continue;
      if (const std::uint32_t slot = recorded.slots.find(list->tensor(i).address());
          slot != record::SlotIndex::kMissing)
        from.push_back(SlotId{slot});
    }
  const SlotSet copied = reached_by(graph, from, OpId{trace_.update_ends});
  StateCheck::Names copies;
  std::erase_if(bad, [&](const auto& each) {
    const std::uint32_t slot = recorded.slots.find(storage_of(each.second));
    if (slot == record::SlotIndex::kMissing || !copied[SlotId{slot}]) return false;
    copies.push_back(each.first);
    return true;
  });
  check_.left_behind(copies);
  if (bad.empty()) return {};
  return {{.kind = Fact::spoiled_between,
           .name = bad.front().first,
           .more = last_writer_of(bad.front().second),
           .number = static_cast<std::int64_t>(bad.size()) - 1}};
}

void AttachSession::look_between(StepAnswer& answer) {
  if (!machine_.over() || machine_.paused()) return;
  if (machine_.reported()) return remember_damage();  // what was copied since then is its damage, too
  // Ranks have to name the same step, and what one of them does between its steps reaches the others in the
  // next.
  if (options_.probe.world_size > 1) return;
  if (!on_record() || ops_so_far() <= trace_.update_ends || trace_.update_ends == 0) return;
  if (std::exchange(trace_.looked_between, true)) return;
  const Facts what = damage_between();
  if (what.empty()) return;
  hear(Hear::all);  // if the step itself was bad, this is its damage
  if (machine_.reported()) return remember_damage();
  answer.step = step();
  answer.gate = Gate::non_finite;
  write_incident(answer.gate, what, answer, /*update_made=*/true);
  remember_damage();
}

Facts AttachSession::outlook() {
  Facts facts;
  if (writer_.count() == 0) return facts;
  safely("the end", [&] {
    const StateCheck::Names bad = check_.left_of(check_.bad_now());
    if (!bad.empty())
      facts.push_back({.kind = Fact::still_bad,
                       .name = bad.front(),
                       .number = static_cast<std::int64_t>(bad.size()) - 1});
    if (good_steps_ == 0) facts.push_back({.kind = Fact::never_updated, .number = steps_made()});
    if (loss_scale_ < first_scale_ && good_steps_ == 0)
      facts.push_back({.kind = Fact::scale_fell, .value = loss_scale_});
  });
  return facts;
}

}  // namespace nanquest::attach
