#include "trainer/loop/run_account.h"

#include <numeric>

namespace nanquest::trainer {

double RunAccount::recent_mean() const {
  return recent_losses_.empty() ? 0.0
                                : std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
                                      static_cast<double>(recent_losses_.size());
}

void RunAccount::add(const StepEvent& event) {
  if (event.step == 0) summary.first_loss = event.loss;
  recent_losses_.push_back(event.loss);
  if (recent_losses_.size() > 20) recent_losses_.pop_front();
}

void RunAccount::add_incident(std::int64_t step, const std::string& snapshot) {
  if (summary.first_incident_step < 0) {
    summary.first_incident_step = step;
    summary.loss_at_incident = recent_mean();
  }
  if (!snapshot.empty()) summary.incidents.push_back(snapshot);
}

void RunAccount::add(const std::vector<Metric>& held_out) {
  summary.eval_loss = held_out.front().value;
  summary.held_out = held_out;
}

Story RunAccount::story() const {
  Story story;
  story.first_loss = summary.first_loss;
  story.first_incident_step = summary.first_incident_step;
  story.loss_at_incident = summary.loss_at_incident;
  story.last_eval = summary.eval_loss;
  story.recent_losses = {recent_losses_.begin(), recent_losses_.end()};
  story.incidents = summary.incidents;
  return story;
}

void RunAccount::take_up(const Story& story) {
  summary.first_loss = story.first_loss;
  summary.first_incident_step = story.first_incident_step;
  summary.loss_at_incident = story.loss_at_incident;
  summary.eval_loss = story.last_eval;
  summary.incidents = story.incidents;
  recent_losses_.assign(story.recent_losses.begin(), story.recent_losses.end());
}

void RunAccount::close() {
  summary.last_loss = recent_mean();
  summary.averaged = static_cast<std::int64_t>(recent_losses_.size());
}

}  // namespace nanquest::trainer
