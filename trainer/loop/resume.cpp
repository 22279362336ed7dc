// Going on from a checkpoint, and what it tells of the run so far.
#include <filesystem>

#include "trainer/loop/trainer.h"

namespace nanquest::trainer {

Status Trainer::resume() {
  const Result<FoundState> found = checkpoints_.newest();
  if (!found) return found.error();
  for (const std::string& remark : found->remarks) say(remark);
  return go_on_from(found->state);
}

Status Trainer::go_on_from(const TrainState& state) {
  if (Status s = identity_.check(state); !s) return s;
  if (Status s = restore(state); !s) return s;
  take_up(state.story);
  return {};
}

TrainState Trainer::save() const {
  TrainState state = ladder_.present();
  for (auto& [name, t] : state.tensors) t = t.clone();
  return state;
}

Status Trainer::restore(const TrainState& state) {
  return ladder_.restore(state, config_.changes.contains("device"));
}

Story Trainer::story() const {
  return {.first_loss = summary_.first_loss,
          .first_incident_step = summary_.first_incident_step,
          .loss_at_incident = summary_.loss_at_incident,
          .last_eval = summary_.eval_loss,
          .recent_losses = {recent_losses_.begin(), recent_losses_.end()},
          .incidents = summary_.incidents,
          .skipped_samples = batches_.dropped,
          .scale_history = ladder_.scaler().history()};
}

void Trainer::take_up(const Story& story) {
  summary_.first_loss = story.first_loss;
  summary_.first_incident_step = story.first_incident_step;
  summary_.loss_at_incident = story.loss_at_incident;
  summary_.eval_loss = story.last_eval;
  summary_.incidents = story.incidents;
  batches_.dropped = story.skipped_samples;
  recent_losses_.assign(story.recent_losses.begin(), story.recent_losses.end());
  ladder_.scaler().set_history(story.scale_history);
  std::error_code ec;
  if (std::filesystem::exists(checkpoints_.weights("best"), ec))
    summary_.best_weights = checkpoints_.weights("best");
}

}  // namespace nanquest::trainer
