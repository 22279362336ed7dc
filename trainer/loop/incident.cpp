// What the ladder's answers mean to this loop: what is said, saved and left out.
#include <utility>

#include "trainer/loop/trainer.h"

namespace nanquest::trainer {

namespace {

/// The file that rank `other` writes where this one writes `path`; `path` if it is not called like one of a
/// rank.
std::string file_of_rank(std::string path, std::int32_t own, std::int32_t other) {
  const std::string mark = ".r" + std::to_string(own) + ".";
  const std::size_t at = path.rfind(mark);
  if (other >= 0 && at != std::string::npos)
    path.replace(at, mark.size(), ".r" + std::to_string(other) + ".");
  return path;
}

}  // namespace

LadderListener Trainer::ladder_listener() {
  return {.say =
              [this](const std::string& text) {
                // The first line is that of the incident: the rank that it began on has more to say of it.
                if (std::exchange(whose_, -1) == ranks_->rank()) return say_own(text);
                say(text);
              },
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
  const std::string bad = bad_ranks(whose_);
  if (!bad.empty()) say(bad);
  if (!report.incident.empty())
    summary_.incidents.push_back(file_of_rank(report.incident, ranks_->rank(), whose_));
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
