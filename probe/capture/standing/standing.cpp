#include "probe/capture/standing/standing.h"

#include <algorithm>

#include "probe/capture/recorder_parts.h"

namespace nanquest {
namespace standing {

void Step::let_go() {
  usable = false;
  slots.clear();
  values.clear();
  host_writes.clear();
  generators.clear();
  opaque.clear();
  nodes.clear();
  notes.clear();
  held = look_at = 0;
}

void Step::clear() {
  let_go();
  ops.clear();
  words.clear();
}

std::size_t Step::memory() const {
  return ops.capacity() * sizeof(OpRecord) + words.capacity_bytes() + slots.capacity_bytes() +
         values.capacity() + host_writes.capacity() * sizeof(HostWrite) +
         generators.capacity() * sizeof(GeneratorState) + nodes.capacity() * sizeof(MadeNode) +
         stacks.capacity() * sizeof(stacks[0]);
}

}  // namespace standing

using standing::Step;

StandingTrace::StandingTrace(StandingOptions options) : options_(options) {
  options_.keep_steps = std::max(options_.keep_steps, 0);
}

StandingTrace::~StandingTrace() = default;

Step& StandingTrace::free_step() {
  for (const auto& step : all_)
    if (step.get() != before_ && std::find(kept_.begin(), kept_.end(), step.get()) == kept_.end())
      return *step;
  return *all_.emplace_back(std::make_unique<Step>());
}

void StandingTrace::age(std::int64_t number) {
  if (current_) {
    if (std::find(kept_.begin(), kept_.end(), current_) == kept_.end()) current_->let_go();
    if (!current_->ops.empty()) before_ = current_;
  }
  while (!kept_.empty() &&
         (kept_.front()->number + options_.keep_steps < number || kept_.front()->number >= number)) {
    kept_.front()->let_go();
    kept_.erase(kept_.begin());
  }
}

void StandingTrace::pass_step(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  recording_ = updating_ = false;
  age(number);
}

void StandingTrace::forget_if_produced(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || !tensor.defined() || !can_record(tensor)) return;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const std::uint32_t slot = current_->slots.find(storage);
  if (slot != standing::SlotIndex::kMissing && current_->slots[slot].produced)
    current_->slots.forget(storage);
}

void StandingTrace::begin_step(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  age(number);
  current_ = &free_step();
  current_->clear();
  current_->number = number;
  current_->usable = true;
  recording_ = error_.empty();
  updating_ = outgrown_ = false;
}

void StandingTrace::begin_update(bool keep_values) {
  const std::lock_guard lock(mutex_);
  update_cost_ = {};
  updating_ = true;
  if (keep_values || !current_) return;
  recording_ = false;
  current_->let_go();
}

bool StandingTrace::idle() {
  const std::lock_guard lock(mutex_);
  return !recording_ && !(current_ && current_->usable);
}

void StandingTrace::end_step(bool keep) {
  const std::lock_guard lock(mutex_);
  recording_ = updating_ = false;
  ops_between_ = 0;
  if (!current_ || std::find(kept_.begin(), kept_.end(), current_) != kept_.end()) return;
  if (keep && current_->usable && options_.keep_steps > 0) {
    kept_.push_back(current_);
    current_->slots.forget_produced();
  } else {
    current_->let_go();
  }
}

Step* StandingTrace::find(std::int64_t number) {
  if (current_ && current_->usable && current_->number == number) return current_;
  for (Step* step : kept_)
    if (step->number == number && step->usable) return step;
  return nullptr;
}

std::vector<std::int64_t> StandingTrace::steps() const {
  std::vector<std::int64_t> numbers;
  for (const Step* step : kept_) numbers.push_back(step->number);
  if (current_ && current_->usable && (numbers.empty() || numbers.back() != current_->number))
    numbers.push_back(current_->number);
  return numbers;
}

std::size_t StandingTrace::memory() const {
  std::size_t all = 0;
  for (const auto& step : all_) all += step->memory();
  return all;
}

void StandingTrace::give_up_step() {
  recording_ = false;
  current_->let_go();
}

bool StandingTrace::holds_too_much() {
  standing::Step& step = *current_;
  if (step.held <= std::max(step.look_at, options_.hold_bytes)) return false;
  std::uint64_t alone = 0;
  for (std::uint32_t i = 0; i < step.slots.size(); ++i)
    if (step.slots[i].live.use_count() == 1) alone += step.slots[i].first_bytes;
  step.look_at = step.held + options_.hold_bytes / 2;
  return alone > options_.hold_bytes;
}

void StandingTrace::let_go_of_the_past() {
  std::uint64_t alone = 0;
  for (const Step* step : kept_)
    for (std::uint32_t i = 0; i < step->slots.size(); ++i) {
      const c10::Storage& live = step->slots[i].live;
      if (!live || live.use_count() > kept_.size()) continue;
      const auto ours = std::count_if(kept_.begin(), kept_.end(), [&](const Step* other) {
        const std::uint32_t there = other->slots.find(live.unsafeGetStorageImpl());
        return there != standing::SlotIndex::kMissing && other->slots[there].live;
      });
      if (static_cast<std::uint64_t>(ours) == live.use_count())
        alone += step->slots[i].first_bytes / live.use_count();
    }
  if (alone <= options_.hold_after_bytes) return;
  for (Step* step : kept_) step->let_go();
  kept_.clear();
}

void StandingTrace::on_error(const char* what) {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  if (current_) current_->usable = false;
  if (error_.empty()) error_ = what;
}

}  // namespace nanquest
