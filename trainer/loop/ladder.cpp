#include "trainer/loop/ladder.h"

#include <algorithm>
#include <utility>

#include "trainer/config/short_number.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

Status check(const LadderOptions& o) {
  const auto wrong = [](const std::string& what, const std::string& hint) {
    return Error{ErrorCode::usage, what, hint};
  };
  if (!(o.lr_backoff > 0 && o.lr_backoff <= 1))
    return wrong("lr-backoff must be above 0 and at most 1", "try 0.5");
  if (o.ring_every < 1 || o.ring_depth < 1)
    return wrong("ring-every and ring-depth must be at least 1", "try 20 and 3");
  return {};
}

Ladder::Ladder(const LadderOptions& options, const ScalerOptions& scaler, at::ScalarType format,
               Learned learned, Counters& counters, LadderListener listener)
    : options_(options),
      scaler_(scaler, format == at::kHalf),
      began_in_(format),
      format_(format),
      learned_(std::move(learned)),
      counters_(&counters),
      listener_(std::move(listener)) {}

Ladder::Answer Ladder::after(const StepReport& report) {
  if (!std::exchange(trying_, true)) scale_before_ = scaler_.state();
  if (report.ok()) {
    if (once_in_fp32_) {
      counters_->retried = true;
      say("the same batch is finite in fp32; going on in " + short_name(format_));
    }
    return {.next = Next::update};
  }
  // The scale calibrates itself: the step is undone, and the same batch is tried at the new scale.
  if (!once_in_fp32_ && report.gate == Gate::scale_overflow && scaler_.overflow(counters_->optimizer_step) &&
      !report.state_corrupt)
    return {.next = Next::again};
  // Not finite at any scale: the reduced scale would slow down the next steps.
  if (!once_in_fp32_) scaler_.take_back(counters_->optimizer_step, scale_before_);
  return incident(report);
}

Ladder::Answer Ladder::updated(const StepReport& report) {
  if (!report.ok()) return incident(report);
  trying_ = once_in_fp32_ = false;
  scaler_.good_step(counters_->optimizer_step++);
  counters_->consecutive_skips = 0;
  return {};
}

Ladder::Answer Ladder::incident(const StepReport& report) {
  if (listener_.incident) listener_.incident(report);
  if (!once_in_fp32_) ++counters_->incidents;
  const std::string step = "step " + std::to_string(counters_->optimizer_step), again = step + ": ";
  say(step + " is not finite in " + short_name(format()) + ": " +
      report.summary.substr(report.summary.starts_with(again) ? again.size() : 0));
  const bool retried = std::exchange(once_in_fp32_, false);
  trying_ = false;
  if (report.state_corrupt) return roll_back("weights, buffers or moments are not finite", true);
  switch (options_.policy) {
    case Policy::stop:
      return stop({.why = "policy stop"});
    case Policy::rollback:
      return roll_back("policy rollback", true);
    case Policy::skip:
      return skip("policy skip");
    case Policy::retry_fp32:
      return retried ? skip("the retry in fp32 failed too") : retry_in_fp32();
    case Policy::fallback_fp32:
      return fall_back();
  }
  return stop({.why = "unknown policy"});
}

Ladder::Answer Ladder::fall_back() {
  if (counters_->fell_back) return skip("the fp32 fallback was already taken");
  const bool was_low = format_ != at::kFloat;
  counters_->fell_back = true;
  counters_->backoff *= options_.lr_backoff;
  format_ = at::kFloat;
  scaler_.disable();
  learned_.cast_to_fp32();
  say("from here on: fp32, learning rate times " + short_number(counters_->backoff));
  // In fp32 the same batch would only give the same result.
  return was_low ? Answer{.next = Next::again, .why = "once more in fp32"} : skip("it failed in fp32");
}

Ladder::Answer Ladder::retry_in_fp32() {
  if (format_ == at::kFloat) return skip("it failed in fp32");
  once_in_fp32_ = trying_ = true;
  return {.next = Next::again, .why = "once more in fp32"};
}

Ladder::Answer Ladder::skip(const std::string& why) {
  ++counters_->skipped;
  say("batch skipped: " + why);
  if (++counters_->consecutive_skips < options_.skip_limit) return {.dropped = true, .why = why};
  return roll_back(std::to_string(counters_->consecutive_skips) + " batches skipped in a row", true, true);
}

Ladder::Answer Ladder::roll_back(const std::string& why, bool dropped, bool counted) {
  const bool corrupt = !learned_.finite(true);
  was_corrupt_ = was_corrupt_ || corrupt;
  if (counters_->rollbacks >= options_.rollback_limit || ring_.empty()) {
    // No non-finite state may remain, even when giving up.
    const bool back = corrupt && !ring_.empty() && return_to(ring_.back());
    return stop({.dropped = counted,
                 .went_back = back,
                 .why = why + ", and " + std::to_string(counters_->rollbacks) + " rollbacks did not help"});
  }
  ++counters_->rollbacks;
  if (Status s = return_to(state_to_go_back_to()); !s)
    return stop({.dropped = counted, .why = s.error().text()});
  counters_->consecutive_skips = 0;
  if (dropped && !counted) ++counters_->skipped;
  say(why + ": back to the state before step " + std::to_string(counters_->optimizer_step) +
      ", data goes on behind the bad batch");
  return {.dropped = dropped, .went_back = true, .why = why};
}

Ladder::Answer Ladder::keep() {
  if (stopped_) return {.next = Next::stop};
  const std::int64_t step = counters_->optimizer_step;
  if (kept_step_ >= 0 && (step == kept_step_ || step % options_.ring_every != 0)) return {};
  if (!learned_.finite(true)) return roll_back("the state to be kept is not finite", false);
  TrainState state = present();
  for (auto& [name, t] : state.tensors) t = t.clone();
  ring_.push_back(std::move(state));
  kept_step_ = step;
  // The n-th rollback returns n states back, so further rollbacks have no use.
  const std::int64_t depth =
      std::max<std::int64_t>(1, std::min(options_.ring_depth, options_.rollback_limit));
  while (static_cast<std::int64_t>(ring_.size()) > depth) ring_.pop_front();
  return {};
}

Ladder::Answer Ladder::stop(Answer answer) {
  stopped_ = true;
  answer.next = Next::stop;
  return answer;
}

const TrainState& Ladder::state_to_go_back_to() {
  const auto back = static_cast<std::size_t>(counters_->rollbacks);
  const std::size_t keep = ring_.size() - std::min(back, ring_.size()) + 1;
  // States after it belong to the discarded future.
  ring_.erase(ring_.begin() + static_cast<std::ptrdiff_t>(keep), ring_.end());
  return ring_.back();
}

Status Ladder::return_to_newest() {
  if (!ring_.empty()) return return_to(ring_.back());
  return Error{ErrorCode::usage, "there is no older state", ""};
}

Status Ladder::return_to(const TrainState& good) {
  Counters kept = *counters_;
  kept.optimizer_step = good.counters.optimizer_step;
  if (Status s = restore(good); !s) return s;
  *counters_ = kept;
  kept_step_ = kept.optimizer_step;
  if (counters_->fell_back) {
    format_ = at::kFloat;
    scaler_.disable();
  }
  return {};
}

TrainState Ladder::present() const {
  TrainState state;
  state.counters = *counters_;
  state.scaler = scaler_.state();
  state.tensors = learned_.with_generators();
  if (listener_.complete) listener_.complete(state);
  return state;
}

Status Ladder::restore(const TrainState& state, bool other_device) {
  if (Status s = learned_.put_back(state.tensors, other_device); !s) return s;
  *counters_ = state.counters;
  scaler_.restore(state.scaler);
  format_ = counters_->fell_back ? at::kFloat : began_in_;
  trying_ = once_in_fp32_ = false;
  return {};
}

void Ladder::say(const std::string& text) const {
  if (listener_.say) listener_.say(text);
}

}  // namespace nanquest::trainer
