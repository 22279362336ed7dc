#include "probe/record/tape.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "probe/record/rows.h"
#include "probe/record/tokens.h"

namespace nanquest::record {
namespace {

/// Freed storages are looked for once in this many stretches.
constexpr std::int64_t kPruneEvery = 16;

/// Memory that LibTorch did not allocate may be written without an op.
bool is_foreign(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return !storage.resizable() && storage.device().is_cpu() && storage.data() && !tensor.requires_grad();
}

std::uint64_t look_at(const c10::Storage& storage) {
  return storage.nbytes() <= kMaxSharedBytes ? hash_of_storage(storage)
                                             : hash_of_samples(storage.data(), storage.nbytes());
}

}  // namespace

void Tape::begin() {
  if (off_ || options_.steps <= 0) return;
  const auto anchor = [&] {
    anchors_.push_back({first_ + static_cast<std::int64_t>(stretches_.size()), 0, {}});
  };
  if (anchors_.empty()) {
    if (!values_) values_.emplace(options_.room);
    return anchor();
  }
  if (anchors_.back().gates < options_.steps) return;
  // The next one will hold about as much as this one.
  std::vector<const TapeValue*> last;
  for (const auto& [id, value] : anchors_.back().values) last.push_back(&value);
  const bool fits = anchors_.size() == 2 || values_->fit_again(last);
  if (anchors_.size() == 2) drop_oldest();
  if (fits) return anchor();
  if (anchors_.back().gates < 2 * options_.steps) return;
  drop_oldest();
  anchor();
}

void Tape::drop_oldest() {
  anchors_.pop_front();
  const std::int64_t begins =
      anchors_.empty() ? first_ + static_cast<std::int64_t>(stretches_.size()) : anchors_.front().begins;
  for (; first_ < begins; ++first_) stretches_.pop_front();
  prune();
  recount();
}

void Tape::prune() {
  std::erase_if(known_, [&](const auto& each) {
    return each.second.storage.expired() || (each.second.last < first_ && each.second.last >= 0);
  });
}

void Tape::recount() {
  if (!values_) return;
  std::uint64_t rows = 0;
  for (const Stretch& stretch : stretches_) rows += stretch.bytes;
  std::vector<const TapeValue*> values;
  for (const Anchor& anchor : anchors_)
    for (const auto& [id, value] : anchor.values) values.push_back(&value);
  values_->recount(rows, values);
}

void Tape::cut(std::string why, bool every_step) {
  if (anchors_.empty()) return;
  why_ = std::move(why);
  if (every_step) futile_ = steps() < options_.futile ? futile_ + 1 : 0;
  first_ += static_cast<std::int64_t>(stretches_.size());
  anchors_.clear();
  stretches_.clear();
  known_.clear();
  recount();
  if (futile_ < options_.futile) return;
  off_ = true;
  complaint_ = "there is no tape: " + why_;
}

std::string Tape::complaint() {
  if (complaint_.empty() || std::exchange(told_, true)) return "";
  return complaint_;
}

int Tape::steps() const {
  return anchors_.empty() ? 0 : anchors_.front().gates;
}

Tape::Known& Tape::known(const c10::StorageImpl* storage,
                         const c10::weak_intrusive_ptr<c10::StorageImpl>& weak) {
  const auto [at, fresh] = known_.try_emplace(storage, Known{.storage = weak, .last = -1});
  if (fresh) at->second.id = next_id_++;
  return at->second;
}

void Tape::read(const at::Tensor& tensor, const SlotRecord& slot) {
  if (anchors_.empty()) return;
  const c10::Storage& storage = tensor.storage();
  Known& entry = known(storage.unsafeGetStorageImpl(), slot.storage);
  bool changed = entry.last >= 0 && !entry.initialised;
  if (entry.foreign || is_foreign(tensor)) {
    const std::uint64_t hash = look_at(storage);
    changed = changed || (entry.last >= 0 && entry.foreign && hash != entry.hash);
    entry.foreign = true;
    entry.made = false;
    entry.hash = hash;
  }
  if (changed) {
    entry.id = next_id_++;
    entry.last = -1;
    entry.value = {};
  }
  for (Anchor& anchor : anchors_) {
    if (entry.last >= anchor.begins || anchor.values.count(entry.id) > 0) continue;
    if (!entry.value.bytes.defined() || entry.written || entry.value.bytes.nbytes() != slot.first_bytes) {
      auto copy = values_->copy(storage, slot.first_bytes);
      if (!copy) return refuse();
      entry.value = std::move(*copy);
      entry.written = false;
    }
    anchor.values.emplace(entry.id, entry.value);
  }
  entry.initialised = true;
  entry.last = first_ + static_cast<std::int64_t>(stretches_.size());
}

void Tape::made(const at::Tensor& tensor) {
  if (anchors_.empty()) return;
  const c10::Storage& storage = tensor.storage();
  Known& entry = known(storage.unsafeGetStorageImpl(), storage.getWeakStorageImpl());
  entry.foreign = entry.made = true;
  entry.hash = look_at(storage);
}

void Tape::refuse() {
  cut(values_->why());
  off_ = true;
  complaint_ = "there is no tape: " + why_;
}

Tape::Stretch Tape::stretch_of(const Step& step) {
  Stretch part;
  part.ops = step.ops;
  part.words.assign(step.words.at(0), step.words.at(0) + step.words.size());
  part.generators = step.generators;
  part.reads = step.reads;
  part.marks = step.marks;
  for (const HostWrite& write : step.host_writes) {
    HostWrite& mine = part.host_writes.emplace_back(write);
    at::Tensor& bytes = part.host_bytes.emplace_back();
    if (!write.data) continue;
    bytes = at::empty({static_cast<std::int64_t>(write.bytes)}, at::kByte);
    std::memcpy(bytes.mutable_data_ptr(), write.data, write.bytes);
    mine.data = static_cast<const std::byte*>(bytes.const_data_ptr());
    part.bytes += write.bytes;
  }
  const std::int64_t now = first_ + static_cast<std::int64_t>(stretches_.size());
  part.slots.reserve(step.slots.size());
  for (std::uint32_t i = 0; i < step.slots.size(); ++i) {
    const SlotRecord& slot = step.slots[i];
    const c10::StorageImpl* const storage = slot.storage._unsafe_get_target();
    const auto at = storage ? known_.find(storage) : known_.end();
    std::uint32_t id = 0;
    if (at != known_.end() || (storage && !slot.storage.expired())) {
      Known& entry = at != known_.end() ? at->second : known(storage, slot.storage);
      id = entry.id;
      entry.last = now;
      entry.initialised = slot.initialised;
      entry.written = entry.written || slot.writer != UINT32_MAX;
      if (entry.foreign && !entry.made && slot.writer != UINT32_MAX)
        if (const auto memory = slot.storage.lock(); memory && memory->data())
          entry.hash = look_at(c10::Storage(memory));
    } else {
      id = next_id_++;
    }
    part.slots.push_back({id, slot.bytes, slot.first_bytes, slot.type, slot.device});
  }
  for (const HostWrite& write : step.host_writes)
    if (const auto at = known_.find(step.slots[write.slot].storage._unsafe_get_target());
        at != known_.end()) {
      at->second.written = true;
      if (at->second.foreign)
        if (const auto memory = at->second.storage.lock(); memory && memory->data())
          at->second.hash = look_at(c10::Storage(memory));
    }
  part.gates = static_cast<int>(
      std::count_if(part.marks.begin(), part.marks.end(), [](const TapeMark& mark) { return mark.gate; }));
  part.bytes += part.ops.size() * sizeof(OpRecord) + part.words.size() * sizeof(std::uint64_t) +
                part.slots.size() * sizeof(Met) + part.generators.size() * sizeof(GeneratorState);
  return part;
}

void Tape::append(const Step& step) {
  if (anchors_.empty() || (step.ops.empty() && step.marks.empty())) return;
  Stretch part = stretch_of(step);
  for (Anchor& anchor : anchors_) anchor.gates += part.gates;
  const std::uint64_t rows = part.bytes;
  stretches_.push_back(std::move(part));
  if (!values_->add_rows(rows)) {
    // The model fits, but the tape has become too long for the remaining memory.
    if (anchors_.size() == 2) drop_oldest();
    if (!values_->add_rows(0)) return refuse();
  }
  if ((first_ + static_cast<std::int64_t>(stretches_.size())) % kPruneEvery == 0)
    std::erase_if(known_, [](const auto& each) { return each.second.storage.expired(); });
}

void Tape::join(Step& whole, const Stretch& part, std::unordered_map<std::uint32_t, std::uint32_t>& slots) {
  const auto words = whole.words.size();
  const auto ops = static_cast<std::uint32_t>(whole.ops.size());
  const auto generators = static_cast<std::int32_t>(whole.generators.size());
  std::vector<std::uint32_t> place;
  place.reserve(part.slots.size());
  for (const Met& met : part.slots) {
    const std::uint32_t slot = slots.at(met.id);
    whole.slots[slot].bytes = std::max(whole.slots[slot].bytes, met.bytes);
    place.push_back(slot);
  }
  std::uint64_t* const mine = whole.words.extend(part.words.size());
  std::copy(part.words.begin(), part.words.end(), mine);
  const auto renumber = [&](const std::uint64_t* at, Header header) {
    if (!header.slot_known()) return;
    header.number = static_cast<std::int32_t>(place[static_cast<std::size_t>(header.number)]);
    mine[at - mine] = std::bit_cast<std::uint64_t>(header);
  };
  for (const OpRecord& op : part.ops) {
    each_tensor_token(mine + op.first_argument, op.argument_tokens, renumber);
    if (op.ended) each_tensor_token(mine + op.first_output, op.outputs + op.written, renumber);
    OpRecord& copy = whole.ops.emplace_back(op);
    copy.first_argument += words;
    copy.first_output += words;
    if (copy.generator != kNone) copy.generator += generators;
  }
  for (const HostWrite& write : part.host_writes)
    whole.host_writes.emplace_back(write).slot = place[write.slot];
  whole.generators.insert(whole.generators.end(), part.generators.begin(), part.generators.end());
  for (const HostRead& read : part.reads) whole.reads.emplace_back(read).op += ops;
  for (const TapeMark& mark : part.marks) {
    TapeMark& copy = whole.marks.emplace_back(mark);
    copy.op += ops;
    if (mark.loss_op == UINT32_MAX) continue;
    copy.loss_op += ops;
    copy.loss_slot = place[mark.loss_slot];
  }
}

std::unique_ptr<Step> Tape::whole(const Step* now) {
  if (anchors_.empty()) return nullptr;
  std::vector<const Stretch*> parts;
  for (const Stretch& stretch : stretches_) parts.push_back(&stretch);
  Stretch last;
  if (now && !now->ops.empty()) {
    last = stretch_of(*now);
    parts.push_back(&last);
  }
  auto whole = std::make_unique<Step>();
  whole->of_tape = true;
  whole->usable = true;
  whole->number = -1;
  std::unordered_map<std::uint32_t, const Known*> alive;
  for (const auto& [storage, entry] : known_) alive.emplace(entry.id, &entry);
  std::unordered_map<std::uint32_t, std::uint32_t> slots;
  for (const Stretch* part : parts)
    for (const Met& met : part->slots) {
      if (slots.count(met.id) > 0) continue;
      SlotRecord record;
      record.bytes = met.bytes;
      record.first_bytes = met.first_bytes;
      record.type = met.type;
      record.device = met.device;
      if (const auto at = alive.find(met.id); at != alive.end()) record.storage = at->second->storage;
      const auto value = anchors_.front().values.find(met.id);
      record.produced = value == anchors_.front().values.end();
      if (!record.produced) {
        const at::Tensor& bytes = value->second.bytes;
        if (bytes.is_cpu())
          record.saved = static_cast<const std::byte*>(bytes.const_data_ptr());
        else
          record.saved_on_device = bytes;
        record.first_bytes = bytes.nbytes();
      }
      slots.emplace(met.id, whole->slots.add(std::move(record)));
    }
  // Host writes of `now` refer to `last`, which ends here: their bytes go with the step.
  for (const Stretch* part : parts) join(*whole, *part, slots);
  std::size_t own = whole->host_writes.size() - last.host_writes.size();
  for (std::size_t i = 0; i < last.host_writes.size(); ++i, ++own)
    if (const HostWrite& write = last.host_writes[i]; write.data) {
      std::byte* const copy = whole->values.take(write.bytes);
      std::memcpy(copy, write.data, write.bytes);
      whole->host_writes[own].data = copy;
    }
  return whole;
}

}  // namespace nanquest::record
