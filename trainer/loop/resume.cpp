// Going on from a checkpoint: whether it is of the same training, and what it tells of the run so far.
#include <cstdio>
#include <filesystem>
#include <sstream>

#include "trainer/config/shell_word.h"
#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

/// Of the settings in a checkpoint the one that a resume may change without --set.
constexpr const char* kLength = "steps";

/// The words in which two fingerprints differ: "width=16 is width=32 now". Both whole if they have no common
/// form.
std::string difference(const std::string& then, const std::string& now) {
  std::istringstream a(then), b(now);
  std::string words, old_word, new_word;
  while (a >> old_word && b >> new_word) {
    if (old_word == new_word) continue;
    words.append(words.empty() ? "" : ", ").append(old_word).append(" is ").append(new_word).append(" now");
  }
  return words.empty() ? then + " is " + now + " now" : words;
}

}  // namespace

std::map<std::string, std::string> training_settings(const LoopConfig& config) {
  std::map<std::string, std::string> all = config.training;
  LoopConfig own = config;  // a list points into what it lists
  SettingList list;
  declare(list, own);
  declare(list, own.scaler);
  for (const auto& [key, text] : list.training()) all[key] = text;
  all["amp-dtype"] = short_name(config.amp);
  all["schedule"] = word_for(config.schedule.decay);
  // Those of a schedule that were not given as text. Its length may change: a run may be made longer.
  SettingList schedule;
  schedule.add("lr", own.schedule.peak, "");
  schedule.add("min-lr-ratio", own.schedule.floor_ratio, "");
  if (!all.contains("warmup-ratio")) schedule.add("warmup-steps", own.schedule.warmup_steps, "");
  for (const auto& [key, text] : schedule.as_text()) all[key] = text;
  return all;
}

Status Trainer::resume() {
  const Result<FoundState> found = checkpoints_.newest();
  if (!found) return found.error();
  for (const std::string& remark : found->remarks) say(remark);
  return go_on_from(found->state);
}

Status Trainer::go_on_from(const TrainState& state) {
  if (Status s = fits(state); !s) return s;
  tell_of_length(state);
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

Status Trainer::fits(const TrainState& state) const {
  const auto other = [&](const char* what, const std::string& then, const std::string& now) {
    return Error{ErrorCode::usage,
                 config_.run_dir + ": its checkpoint is of " + what + ": " + difference(then, now),
                 "resume with what the run was begun with, or start anew without --resume"};
  };
  if (const std::string now = task_->fingerprint(); now != state.fingerprint)
    return other("another model", state.fingerprint, now);
  if (const std::string now = task_->data_fingerprint(); now != state.data_fingerprint)
    return other("other data", state.data_fingerprint, now);
  return check_settings(state);
}

Status Trainer::check_settings(const TrainState& state) const {
  std::string differ, keep, change;
  for (const auto& [key, now] : training_) {
    const auto then = state.settings.find(key);
    if (then == state.settings.end() || then->second == now) continue;
    const std::string both =
        std::string(key).append(" is ").append(now).append(", was ").append(then->second);
    if (config_.changes.contains(key)) {
      say("from step " + std::to_string(state.counters.optimizer_step) + " on: " + both);
      continue;
    }
    differ += (differ.empty() ? "" : "; ") + both;
    // A switch takes its value by the sign alone.
    const bool is_switch = then->second == "true" || then->second == "false";
    keep += " --" + key + (is_switch ? "=" : " ") + shell_word(then->second);
    change += " --set " + key + "=" + shell_word(now);
  }
  if (differ.empty()) return {};
  return Error{ErrorCode::usage, config_.run_dir + ": settings differ from its checkpoint's: " + differ,
               "to go on as before give" + keep + "; to change it from here on give" + change};
}

void Trainer::tell_of_length(const TrainState& state) const {
  const auto then = state.settings.find(kLength);
  const std::string now = std::to_string(config_.steps);
  if (then == state.settings.end() || then->second == now) return;
  const Schedule& schedule = config_.schedule;
  const std::string steps = "steps is " + now + ", was " + then->second;
  if (schedule.decay == Decay::constant) return say(steps);
  char rate[24];
  std::snprintf(rate, sizeof rate, "%.4g",
                schedule.lr(state.counters.optimizer_step, state.counters.backoff));
  say(steps + ": the " + word_for(schedule.decay) +
      " schedule is stretched over them, so the rate goes on at " + rate + " and not where it was");
}

std::map<std::string, std::string> Trainer::settings_on_record() const {
  std::map<std::string, std::string> all = training_;
  all[kLength] = std::to_string(config_.steps);
  return all;
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
