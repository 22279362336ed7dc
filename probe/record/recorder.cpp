#include "probe/record/recorder.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/record/rows.h"
#include "probe/record/unrepeatable.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/sparse_values.h"

namespace nanquest {
using record::Step;

Recorder::Recorder(RecorderOptions options) : options_(std::move(options)) {
  options_.keep_steps = std::max(options_.keep_steps, 0);
  if (options_.tape.steps > 0) tape_ = std::make_unique<record::Tape>(options_.tape);
}

Recorder::~Recorder() = default;

Step& Recorder::free_step() {
  for (const auto& step : all_)
    if (step.get() != before_ && std::find(kept_.begin(), kept_.end(), step.get()) == kept_.end()) {
      twins_.take_records(*step);
      return *step;
    }
  return *all_.emplace_back(std::make_unique<Step>());
}

void Recorder::age(std::int64_t number) {
  if (current_) {
    if (current_ != leads_.led() && std::find(kept_.begin(), kept_.end(), current_) == kept_.end())
      current_->let_go();
    if (!current_->ops.empty()) before_ = current_;
  }
  while (!kept_.empty() &&
         (kept_.front()->number + options_.keep_steps < number || kept_.front()->number >= number)) {
    kept_.front()->let_go();
    kept_.erase(kept_.begin());
  }
}

void Recorder::forget_if_produced(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || into_ != current_ || !tensor.defined() || !can_record(tensor)) return;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const std::uint32_t slot = current_->slots.find(storage);
  if (slot == record::SlotIndex::kMissing || !current_->slots[slot].produced) return;
  // What a module made (a generator's picture, the latents of a frozen encoder plus noise) belongs to the
  // step, whichever module reads it next.
  if (current_->slots[slot].of_model) return;
  current_->slots.forget(storage);
}

void Recorder::begin_step(std::int64_t number, bool watch) {
  const std::lock_guard lock(mutex_);
  put_on_tape();
  const bool led = leads_.step_begins();
  if (leads_.led() && leads_.led() != into_) drop_lead();  // the step begins again
  age(number);
  current_ = into_ = &free_step();
  current_->clear();
  put_ = false;
  if (tape_) tape_->begin();
  current_->number = number;
  current_->usable = true;
  current_->at_once = led || ops_between_ == 0;
  range_watch_.begin_step();
  early_copies_.begin_step();
  thread_ = at::RecordFunction::currentThreadId();
  if (watch) {
    open_overflows_.begin_watched_step();
    current_->watch = std::make_unique<record::ValueWatch>(*current_, options_.stacks, open_overflows_);
  }
  recording_ = error_.empty();
  updating_ = false;
}

void Recorder::begin_update(bool keep_values) {
  const std::lock_guard lock(mutex_);
  update_cost_ = {};
  updating_ = true;
  drop_lead();
  if (keep_values) early_in_update_.begin_step();
  if (keep_values || !current_) return;
  put_on_tape();
  recording_ = false;
  current_->let_go();
  record_between();
}

void Recorder::lose() {
  const std::lock_guard lock(mutex_);
  end_tape("a captured graph ran, and nobody can look into it");
  drop_lead();
  if (current_) give_up_step();
  for (Step* step : kept_) step->let_go();
  kept_.clear();
}

void Recorder::stop() {
  const std::lock_guard lock(mutex_);
  if (into_ != current_) return;  // what runs now is recorded for the tape only
  recording_ = updating_ = false;
  ops_between_ = 0;
  if (!tape_ || !current_) return;
  put_on_tape();
  record_between();
}

bool Recorder::idle() {
  const std::lock_guard lock(mutex_);
  return !recording_ && !(current_ && current_->usable);
}

void Recorder::end_step(bool keep) {
  const std::lock_guard lock(mutex_);
  if (current_ && current_->usable && keep && into_ == current_) record::settle_all(*current_);
  const bool was_recording = recording_;
  recording_ = updating_ = false;
  ops_between_ = 0;
  if (into_ == current_) {
    put_on_tape();
    if (was_recording) record_between();
  } else {
    recording_ = was_recording;
  }
  if (!current_ || std::find(kept_.begin(), kept_.end(), current_) != kept_.end()) return;
  if (!keep && leads_on()) {
    leads_.goes_on(*current_);
    if (current_->watch) current_->watch->rest();
  } else if (keep && current_->usable && options_.keep_steps > 0) {
    kept_.push_back(current_);
    if (current_->watch) current_->watch->rest();
    current_->slots.forget_produced(current_->updated_at);
  } else {
    current_->let_go();
  }
}

void Recorder::release_values() {
  const std::lock_guard lock(mutex_);
  if (current_ && !current_->usable && !(recording_ && into_ == current_)) current_->values.release();
}

void Recorder::keep_healthy(std::int64_t number, const record::TwinNames& names) {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable) return;
  twins_.keep(*current_, number, names);
}

void Recorder::let_go(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const Step* step) { return step->number == number; });
  if (kept == kept_.end()) return;
  (*kept)->let_go();
  kept_.erase(kept);
}

std::uint32_t Recorder::slot_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !can_record(tensor)) return UINT32_MAX;
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable) return UINT32_MAX;
  const std::uint32_t slot = current_->slots.find(tensor.storage().unsafeGetStorageImpl());
  return slot == record::SlotIndex::kMissing ? UINT32_MAX : slot;
}

Step* Recorder::find(std::int64_t number) {
  if (current_ && current_->usable && current_->number == number) return current_;
  for (Step* step : kept_)
    if (step->number == number && step->usable) return step;
  return nullptr;
}

std::vector<std::int64_t> Recorder::steps() const {
  std::vector<std::int64_t> numbers;
  for (const Step* step : kept_) numbers.push_back(step->number);
  if (current_ && current_->usable && (numbers.empty() || numbers.back() != current_->number))
    numbers.push_back(current_->number);
  return numbers;
}

std::size_t Recorder::memory() const {
  std::size_t all = twins_.memory() + leads_.memory();
  for (const auto& step : all_) all += step->memory();
  if (tape_) all += tape_->memory();
  return all;
}

void Recorder::give_up_step() {
  if (tape_) tape_->cut("a step took more than its record may");
  recording_ = false;
  current_->let_go();
}

SeenTensor Recorder::see(const at::Tensor& tensor) {
  SeenTensor seen;
  if (!tensor.defined()) return seen;
  if (!can_record(tensor)) {
    if (const at::Tensor values = values_standing_for(tensor); values.defined()) return see(values);
    seen.row = unseen_row(tensor);
    return seen;
  }
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  seen.tensor = tensor.detach();
  seen.row = row_of(tensor, kNone);
  if (current_ && current_->usable && current_->watch) {
    const std::uint32_t slot = current_->slots.find(tensor.storage().unsafeGetStorageImpl());
    if (slot != record::SlotIndex::kMissing) {
      record::settle(*current_, slot);
      const std::int32_t row = current_->watch->look_now(tensor, slot);
      if (tensor.is_cpu() && row != kNone)
        seen.stats = current_->watch->stats()[static_cast<std::size_t>(row)];
      else
        seen.watched = row;
      return seen;
    }
  }
  seen.stats = stats_of(tensor, /*hash=*/true);
  return seen;
}

void Recorder::complete() {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable) return;
  record::settle_all(*current_);
  if (!current_->watch) return;
  current_->watch->look_at_unseen();
  current_->watch->flag_hidden_overflows();
}

bool Recorder::wrote(const c10::StorageImpl* storage, std::size_t first) {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable || !storage) return false;
  const std::uint32_t slot = current_->slots.find(storage);
  if (slot == record::SlotIndex::kMissing) return false;
  const std::uint32_t writer = current_->slots[slot].writer;
  return writer != UINT32_MAX && writer >= first;
}

bool Recorder::left_something() {
  const std::lock_guard lock(mutex_);
  if (!current_ || !recording_ || into_ != current_) return false;
  for (std::uint32_t slot = 0; slot < current_->slots.size(); ++slot)
    if (const record::SlotRecord& each = current_->slots[slot];
        each.produced && each.of_model && !each.storage.expired())
      return true;
  return false;
}

bool Recorder::asks_for_watching() {
  const std::lock_guard lock(mutex_);
  return open_overflows_.any();
}

bool Recorder::hides_damage() {
  const std::lock_guard lock(mutex_);
  return current_ && current_->watch && current_->watch->hides_damage();
}

std::vector<record::SeenRange> Recorder::ranges() {
  const std::lock_guard lock(mutex_);
  if (!current_) return {};
  if (!current_->watch) return range_watch_.seen();
  current_->watch->settle();
  return record::ranges_of(*current_);
}

void Recorder::look_at(std::vector<record::RangePlace> places) {
  const std::lock_guard lock(mutex_);
  range_watch_.look_at(std::move(places));
}

bool Recorder::left_non_finite(std::size_t first, Phase phase) {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->watch) return false;
  current_->watch->settle();
  return current_->watch->left_non_finite(first, phase);
}

void Recorder::may_be_put_back(const std::vector<at::Tensor>& tensors) {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable) return;
  for (const at::Tensor& tensor : tensors) {
    const std::uint32_t slot = current_->slots.find(tensor.storage().unsafeGetStorageImpl());
    if (slot != record::SlotIndex::kMissing) current_->slots[slot].put_back = true;
  }
}

std::vector<record::Survivor> Recorder::survivors(std::size_t first) {
  const std::lock_guard lock(mutex_);
  if (!current_ || !current_->usable) return {};
  record::settle_all(*current_);
  return record::survivors(*current_, first);
}

bool Recorder::holds_too_much() {
  record::Step& step = *current_;
  if (step.kept.on_device() > options_.hold_bytes) return true;
  if (step.held <= std::max(step.look_at, options_.hold_bytes)) return false;
  std::uint64_t alone = 0;
  for (std::uint32_t i = 0; i < step.slots.size(); ++i)
    if (step.slots[i].live.use_count() == 1) alone += step.slots[i].first_bytes;
  step.look_at = step.held + options_.hold_bytes / 2;
  return alone > options_.hold_bytes;
}

void Recorder::let_go_of_the_past() {
  std::uint64_t alone = 0;
  for (const Step* step : kept_)
    for (std::uint32_t i = 0; i < step->slots.size(); ++i) {
      const c10::Storage& live = step->slots[i].live;
      if (!live || live.use_count() > kept_.size()) continue;
      const auto ours = std::count_if(kept_.begin(), kept_.end(), [&](const Step* other) {
        const std::uint32_t there = other->slots.find(live.unsafeGetStorageImpl());
        return there != record::SlotIndex::kMissing && other->slots[there].live;
      });
      if (static_cast<std::uint64_t>(ours) == live.use_count())
        alone += step->slots[i].first_bytes / live.use_count();
    }
  if (alone <= options_.hold_after_bytes) return;
  for (Step* step : kept_) step->let_go();
  kept_.clear();
}

void Recorder::call_in(const c10::StorageImpl* storage) {
  const at::NoGradGuard no_grad;
  for (const auto& step : all_)
    if (std::string lost = step->kept.call_in(storage); !lost.empty()) step->notes.push_back(std::move(lost));
}

void Recorder::on_error(const char* what) {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  if (current_) {
    current_->notes.push_back(std::string("the trace is incomplete: an op was not recorded: ") + what);
    // In a watched step, what was seen so far may still name the culprit.
    current_->usable = current_->usable && current_->watch;
  }
  if (error_.empty()) error_ = what;
}

}  // namespace nanquest
