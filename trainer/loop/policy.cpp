// What happens after a step that had to be undone: policy, and the ladder above it.
#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

Trainer::Next Trainer::incident(const StepReport& report, const Batch& batch) {
  if (!report.state_corrupt) save_before_policy();
  ++counters_.incidents;
  if (summary_.first_incident_step < 0) {
    summary_.first_incident_step = counters_.optimizer_step;
    summary_.loss_at_incident = mean(recent_losses_);
  }
  if (!report.incident.empty()) summary_.incidents.push_back(report.incident);
  tell_failed(report);
  const std::string step = "step " + std::to_string(counters_.optimizer_step), again = step + ": ";
  say(step + " is not finite in " + short_name(amp_) + ": " +
      report.summary.substr(report.summary.starts_with(again) ? again.size() : 0));
  if (report.state_corrupt) return roll_back(batch, "weights, buffers or moments are not finite");
  switch (config_.policy) {
    case Policy::stop:
      return stop("policy stop");
    case Policy::rollback:
      return roll_back(batch, "policy rollback");
    case Policy::skip:
      return skip(batch, "policy skip");
    case Policy::retry_fp32:
      return retry_in_fp32(batch);
    case Policy::fallback_fp32:
      return fall_back(batch);
  }
  return stop("unknown policy");
}

Trainer::Next Trainer::fall_back(const Batch& batch) {
  if (counters_.fell_back) return skip(batch, "the fp32 fallback was already taken");
  const bool was_low = amp_ != at::kFloat;
  counters_.fell_back = true;
  counters_.backoff *= config_.lr_backoff;
  amp_ = at::kFloat;
  scaler_.disable();
  optimizer_->cast_to_fp32();
  say("from here on: fp32, learning rate times " + std::to_string(counters_.backoff));
  // In fp32 already, the same batch would only give the same result.
  return was_low ? Next::retry : skip(batch, "it failed in fp32");
}

Trainer::Next Trainer::retry_in_fp32(const Batch& batch) {
  if (amp_ == at::kFloat) return skip(batch, "it failed in fp32");
  const StepReport again = attempt(batch, at::kFloat);
  if (!again.ok()) {
    if (!again.incident.empty()) summary_.incidents.push_back(again.incident);
    if (again.state_corrupt) return roll_back(batch, "weights, buffers or moments are not finite");
    return skip(batch, "the retry in fp32 failed too");
  }
  counters_.retried = true;
  say("the same batch is finite in fp32; going on in " + short_name(amp_));
  if (const StepReport updated = apply(again); !updated.ok()) {
    if (!updated.incident.empty()) summary_.incidents.push_back(updated.incident);
    say(updated.summary);
    if (updated.state_corrupt) return roll_back(batch, "weights, buffers or moments are not finite");
    return skip(batch, "its update spoiled weights or moments");
  }
  if (Status s = after_step(again, batch, 0); !s) return stop(s.error().text());
  return Next::advance;
}

Trainer::Next Trainer::skip(const Batch& batch, const std::string& why) {
  ++counters_.skipped;
  pass_batch();
  summary_.skipped_samples.insert(summary_.skipped_samples.end(), batch.ids.begin(), batch.ids.end());
  say("batch skipped: " + why);
  if (++counters_.consecutive_skips < config_.skip_limit) return Next::advance;
  return roll_back({}, std::to_string(counters_.consecutive_skips) + " batches skipped in a row");
}

Trainer::Next Trainer::roll_back(const Batch& batch, const std::string& why) {
  const bool corrupt = !state_is_finite(true);
  state_was_corrupt_ = state_was_corrupt_ || corrupt;
  if (counters_.rollbacks >= config_.rollback_limit || ring_.empty()) {
    // Nothing non-finite is left behind, even when giving up.
    if (corrupt && !ring_.empty()) (void)return_to(ring_.back());
    return stop(why + ", and " + std::to_string(counters_.rollbacks) + " rollbacks did not help");
  }
  ++counters_.rollbacks;
  if (Status s = return_to(state_to_go_back_to()); !s) return stop(s.error().text());
  counters_.consecutive_skips = 0;
  if (!batch.ids.empty()) {
    pass_batch();
    ++counters_.skipped;
    summary_.skipped_samples.insert(summary_.skipped_samples.end(), batch.ids.begin(), batch.ids.end());
  }
  say(why + ": back to the state before step " + std::to_string(counters_.optimizer_step) +
      ", data goes on behind the bad batch");
  return Next::advance;
}

Trainer::Next Trainer::stop(const std::string& why) {
  stopped_ = true;
  summary_.outcome = "stopped: " + why;
  say(summary_.outcome);
  return Next::stop;
}

void Trainer::tell_failed(const StepReport& report) const {
  if (listener_.on_step) listener_.on_step(event_of(report));
}

}  // namespace nanquest::trainer
