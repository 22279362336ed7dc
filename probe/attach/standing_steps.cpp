#include "probe/attach/standing_steps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::attach {
bool all_finite(const at::Tensor& values) {
  const auto stats = values.defined() ? stats_of(values, /*hash=*/false) : std::nullopt;
  return !stats || stats->non_finite() == 0;
}

StandingSteps::StandingSteps(int keep_steps, double keep_share, double memory_share)
    : trace_({.keep_steps = keep_steps}),
      governor_({.keep_steps = keep_steps, .time_share = keep_share, .memory_share = memory_share}),
      keep_steps_(keep_steps) {}

void StandingSteps::new_round() {
  const auto now = std::chrono::steady_clock::now();
  if (round_ >= 0) governor_.step_took(std::chrono::duration<double>(now - began_).count());
  began_ = now;
  odd_since_ = std::min(odd_since_ + 1, kPlainRounds);
  counted_ = false;
}

void StandingSteps::begin(std::int64_t round) {
  new_round();
  round_ = round;
  while (!kept_.empty() && kept_.front().number + keep_steps_ < round) kept_.pop_front();
  trace_.begin_step(round);
  open_ = true;
  ++recorded_;
}

void StandingSteps::pass(std::int64_t round) {
  new_round();
  round_ = round;
  while (!kept_.empty() && kept_.front().number + keep_steps_ < round) kept_.pop_front();
  trace_.pass_step(round);
  open_ = false;
}

bool StandingSteps::begin_update(std::uint64_t bytes, bool on_device, bool asked) {
  if (!open_) return false;
  const bool wanted = governor_.wants(bytes, on_device);
  counted_ = wanted;
  const bool keeps = wanted || (asked && !on_device);
  trace_.begin_update(keeps);
  if (!keeps) end(/*keep=*/false, {});
  return keeps;
}

void StandingSteps::end(bool keep, RoundFacts facts) {
  if (!std::exchange(open_, false)) return;
  if (trace_.outgrown()) saw_odd_op();
  if (std::exchange(counted_, false)) governor_.kept(trace_.update_cost());
  trace_.end_step(keep);
  if (keep && trace_.find(round_)) kept_.push_back({round_, std::move(facts)});
}

void StandingSteps::told(const KeptRound& round) {
  const std::int64_t number = round.number;
  std::erase_if(kept_, [&](const KeptRound& each) { return each.number == number; });
}

const KeptRound* StandingSteps::who_spoiled(const at::Tensor& tensor, std::int64_t now) {
  if (!tensor.defined() || !is_plain(tensor)) return nullptr;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  for (auto round = kept_.rbegin(); round != kept_.rend(); ++round) {
    // What happened in a round that is not on record nobody knows.
    standing::Step* step = round->number == --now ? trace_.find(now) : nullptr;
    if (!step) return nullptr;
    const std::uint32_t slot = step->slots.find(storage);
    if (slot == standing::SlotIndex::kMissing) continue;
    if (step->slots[slot].written_late) return nullptr;  // somebody wrote to it between the rounds
    if (step->slots[slot].produced) return &*round;
    const at::Tensor first = StandingTables(trace_, *step).first_value(storage);
    if (!first.defined()) return nullptr;
    if (all_finite(first)) return &*round;
  }
  return nullptr;
}

}  // namespace nanquest::attach
