// What the ladder's answers mean to this loop: what is said, saved and left out.
#include "trainer/loop/trainer.h"

namespace nanquest::trainer {

LadderListener Trainer::ladder_listener() {
  return {.say = [this](const std::string& text) { say(text); },
          .incident = [this](const StepReport& report) { note_incident(report); },
          .complete =
              [this](TrainState& state) {
                state.fingerprint = task_->fingerprint();
                state.data_fingerprint = task_->data_fingerprint();
                state.settings = settings_on_record();
                state.story = story();
              }};
}

void Trainer::note_incident(const StepReport& report) {
  if (!report.state_corrupt) save_before_policy();
  if (summary_.first_incident_step < 0) {
    summary_.first_incident_step = counters_.optimizer_step;
    summary_.loss_at_incident = mean(recent_losses_);
  }
  if (!report.incident.empty()) summary_.incidents.push_back(report.incident);
  tell_failed(report);
}

Trainer::Next Trainer::follow(const Ladder::Answer& answer, const Batch* batch) {
  if (answer.dropped && batch != nullptr) {
    drop(batch->ids, answer.why);
    pass_batch();
  }
  if (answer.went_back) went_back();
  return answer.next == Ladder::Next::stop ? stop(answer.why) : Next::advance;
}

void Trainer::went_back() {
  consistent_ = true;
  saved_step_ = -1;  // what is at that step from now on is something else
  each_metrics_file([&](MetricsLog& log) { return log.cut(counters_.optimizer_step); });
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
