#include "probe/attach/rounds.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::attach {
namespace {

/// By address, since many of them may be freed by now.
std::vector<NamedMemory> remembered(const NamedList& list) {
  std::vector<NamedMemory> all;
  all.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    all.push_back({list.name(i), list.tensor(i).address(), list.tensor(i).lock()});
  return all;
}

/// By slot the row of the tensor that an op wrote there last.
std::vector<std::int32_t> last_written(const SnapshotDoc& doc) {
  std::vector<std::int32_t> last(doc.slots.size(), kNone);
  for (const OpRow& op : doc.ops)
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const std::int32_t row =
          doc.written[static_cast<std::size_t>(op.first_written) + static_cast<std::size_t>(i)];
      last[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(row)].slot)] = row;
    }
  return last;
}

/// Loss and gradients as the tables have them; the loss, which is there, with its value.
void add_outcome(const RoundOutcome& outcome, const StepNames& named, Recorder& recorder,
                 StepTables& tables) {
  SnapshotDoc& doc = tables.recording.doc;
  const std::vector<std::int32_t> last = last_written(doc);
  const auto row_at = [&](std::uint32_t slot) { return slot < last.size() ? last[slot] : kNone; };
  for (const auto& [loss, slot] : outcome.losses) {
    if (doc.loss != kNone && all_finite(loss)) continue;  // the first that is not finite, else one of them
    SeenTensor seen = recorder.see(loss);
    seen.row.slot = row_at(slot) == kNone ? kNone : static_cast<std::int32_t>(slot);
    doc.loss = tables.add(seen);
    if (!all_finite(loss)) break;
  }
  for (std::size_t i = 0; i < named.parameters.size(); ++i)
    if (named.parameters[i].tensor.defined())
      doc.gradients.push_back(i < outcome.gradients.size() ? row_at(outcome.gradients[i]) : kNone);
}

}  // namespace

bool all_finite(const at::Tensor& values) {
  const auto stats = values.defined() ? stats_of(values, /*hash=*/false) : std::nullopt;
  return !stats || stats->non_finite() == 0;
}

Rounds::Rounds(int keep_steps, double keep_share, double memory_share, record::TapeOptions tape)
    : recorder_({.keep_steps = std::max(keep_steps, 1), .lead = true, .tape = std::move(tape)}),
      governor_({.keep_steps = keep_steps, .time_share = keep_share, .memory_share = memory_share}),
      keep_steps_(keep_steps) {}

void Rounds::begin(bool watch) {
  const auto now = std::chrono::steady_clock::now();
  if (round_ >= 0) governor_.step_took(std::chrono::duration<double>(now - began_).count());
  began_ = now;
  counted_ = held_ = false;
  awaited_ = 0;
  watched_ = watch;
  ++round_;
  while (!kept_.empty() && kept_.front().number + std::max(keep_steps_, 1) < round_) kept_.pop_front();
  recorder_.begin_step(round_, watch);
  open_ = true;
  if (!watch) ++unwatched_;
}

bool Rounds::begin_update(std::uint64_t bytes, at::Device device, bool asked, bool hold) {
  if (!open_) return false;
  if (hold) ++awaited_;
  if (held_) return false;
  // Outputs of ops that may not be repeatable are kept as long as the round.
  if (const record::Step* step = now()) bytes += step->kept.bytes();
  const bool wanted = governor_.wants(bytes, device);
  counted_ = wanted;
  const bool keeps = wanted || asked;
  held_ = hold && !keeps;
  if (held_) {
    recorder_.stop();
    return false;
  }
  recorder_.begin_update(keeps);
  if (!keeps) end(/*keep=*/false, {});
  return keeps;
}

void Rounds::watch_update() {
  if (open_) recorder_.begin_update(/*keep_values=*/true);
}

void Rounds::lose() {
  recorder_.lose();
  kept_.clear();
}

void Rounds::healthy(std::int64_t step, const Names& names, const NamedList& batch) {
  if (!now()) return;
  const auto add = [](record::Addresses& to, const NamedList& from) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (const c10::StorageImpl* storage = from.tensor(i).address()) to.insert(storage);
  };
  // Their addresses are not reused while the lists know them.
  std::uint64_t revision = 1;
  for (const NamedList* list : {&names.parameters, &names.buffers, &names.states, &names.scales, &names.kept})
    revision += list->revision();
  if (revision != names_revision_) {
    twin_names_.state.clear();
    for (const NamedList* list :
         {&names.parameters, &names.buffers, &names.states, &names.scales, &names.kept})
      add(twin_names_.state, *list);
    names_revision_ = revision;
  }
  twin_names_.batch.clear();
  add(twin_names_.batch, batch);
  recorder_.keep_healthy(step, twin_names_);
}

void Rounds::end(bool keep, RoundFacts facts) {
  if (!std::exchange(open_, false)) return;
  if (std::exchange(counted_, false)) governor_.kept(recorder_.update_cost());
  const bool held = std::exchange(held_, false) && awaited_ > 0;
  recorder_.end_step((keep && keep_steps_ > 0) || held);
  // What a watched update overwrote is three times the weights: too much for buffers that wait for the next
  // one.
  if (watched_ && !now()) recorder_.release_values();
  if (((keep && keep_steps_ > 0) || held) && now()) kept_.push_back({round_, std::move(facts), !held});
}

const Rounds::Kept* Rounds::kept(std::int64_t number) {
  const auto round =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& each) { return each.number == number; });
  return round != kept_.end() && recorder_.find(number) ? &*round : nullptr;
}

void Rounds::answered(std::int64_t number, bool well) {
  if (!well) recorder_.twins().not_healthy(number);
  if (open_ && number == round_ && awaited_ > 0) --awaited_;
  const Kept* const round = kept(number);
  if (!round || round->with_update) return;
  recorder_.let_go(number);
  told(*round);
}

RoundOutcome Rounds::outcome(const std::vector<at::Tensor>& losses, const std::vector<at::Tensor>& weights) {
  RoundOutcome found;
  found.known = true;
  for (const at::Tensor& loss : losses) found.losses.emplace_back(loss, recorder_.slot_of(loss));
  for (const at::Tensor& weight : weights)
    found.gradients.push_back(recorder_.slot_of(weight.defined() ? weight.grad() : weight));
  return found;
}

void Rounds::told(const Kept& round) {
  const std::int64_t number = round.number;
  std::erase_if(kept_, [&](const Kept& each) { return each.number == number; });
}

const Rounds::Kept* Rounds::round_that_spoiled(const at::Tensor& tensor, std::int64_t before,
                                               bool RoundFacts::*finite) {
  if (!tensor.defined() || !is_plain(tensor)) return nullptr;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  std::int64_t number = before;
  for (auto round = kept_.rbegin(); round != kept_.rend(); ++round) {
    if (round->number >= before) continue;
    // A round that is not recorded may have done anything.
    record::Step* step = round->number == --number && round->with_update ? recorder_.find(number) : nullptr;
    if (!step) return nullptr;
    const std::uint32_t slot = step->slots.find(storage);
    if (slot == record::SlotIndex::kMissing) continue;
    // It was written between the rounds, shown by an op or by its content.
    if (step->slots[slot].written_late || round->facts.*finite) return nullptr;
    if (step->slots[slot].produced) return &*round;
    const at::Tensor first = StepTables(recorder_, *step).first_value(storage);
    if (!first.defined()) return nullptr;
    if (all_finite(first)) return &*round;
  }
  return nullptr;
}

at::Tensor Rounds::first_value(const at::Tensor& tensor, const Kept* round) {
  record::Step* step = round ? of(*round) : now();
  return step ? StepTables(recorder_, *step).first_value(tensor) : at::Tensor();
}

StepTables Rounds::tables(record::Step& step, const Names& names, const NamedList& batch,
                          const RoundResults& results, StepNames& named) {
  named = {remembered(names.parameters), remembered(names.buffers),
           remembered(names.states),     remembered(batch),
           remembered(names.scales),     {}};
  // One that has another name by now is on record once.
  for (NamedMemory& each : remembered(names.kept))
    if (!names.parameters.any_in(each.storage) && !names.buffers.any_in(each.storage) &&
        !names.states.any_in(each.storage))
      named.buffers.push_back(std::move(each));
  // Those that the step did not make itself existed before it.
  for (std::size_t i = 0; i < results.weights.size() && i < names.parameters.size(); ++i)
    if (const at::Tensor& weight = results.weights[i];
        weight.defined() && weight.grad().defined() && is_plain(weight.grad()))
      named.gradients.push_back(
          {names.parameters.name(i), weight.grad().storage().unsafeGetStorageImpl(), {}});
  StepTables tables(recorder_, step);
  tables.build(named);
  // If a batch was freed, the round still has what it read.
  for (std::size_t i = 0; i < named.batch.size(); ++i)
    if (NamedMemory& each = named.batch[i]; !each.tensor.defined())
      each.tensor = batch.tensor(i).over(tables.first_value(each.storage));
  SnapshotDoc& doc = tables.recording.doc;
  if (results.outcome) {
    add_outcome(*results.outcome, named, recorder_, tables);
    return tables;
  }
  doc.loss = tables.describe(results.loss);
  for (std::size_t i = 0; i < named.parameters.size(); ++i) {
    if (!named.parameters[i].tensor.defined()) continue;
    const at::Tensor weight = i < results.weights.size() ? results.weights[i] : at::Tensor();
    doc.gradients.push_back(tables.describe(weight.defined() ? weight.grad() : weight));
  }
  // After them come those of weights that could not be kept: a step with gradients is not one without.
  for (std::size_t i = 0; i < results.weights.size(); ++i)
    if (const at::Tensor& weight = results.weights[i];
        weight.defined() && weight.grad().defined() && !is_plain(weight.grad()) &&
        (i >= named.parameters.size() || !named.parameters[i].tensor.defined()))
      doc.gradients.push_back(tables.describe(weight.grad()));
  return tables;
}

}  // namespace nanquest::attach
