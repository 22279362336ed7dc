#include "trainer/loop/run_identity.h"

#include <cstdio>
#include <sstream>

#include "trainer/config/shell_word.h"
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

/// All settings that decide what is trained: those of `config.training` and of the loop itself.
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

}  // namespace

RunIdentity::RunIdentity(const LoopConfig& config, const Task& task,
                         std::function<void(const std::string&)> say)
    : config_(config), task_(task), say_(std::move(say)), settings_(training_settings(config)) {}

void RunIdentity::note_in(TrainState& state) const {
  state.fingerprint = task_.fingerprint();
  state.data_fingerprint = task_.data_fingerprint();
  state.settings = settings_;
  state.settings[kLength] = std::to_string(config_.steps);
}

std::string RunIdentity::text() const {
  std::string all = task_.fingerprint() + "\n" + task_.data_fingerprint();
  for (const auto& [key, value] : settings_) all.append("\n").append(key).append("=").append(value);
  return all;
}

Status RunIdentity::check(const TrainState& state) const {
  const auto other = [&](const char* what, const std::string& then, const std::string& now) {
    return Error{ErrorCode::usage,
                 config_.run_dir + ": its checkpoint is of " + what + ": " + difference(then, now),
                 "resume with what the run was begun with, or start anew without --resume"};
  };
  if (const std::string now = task_.fingerprint(); now != state.fingerprint)
    return other("another model", state.fingerprint, now);
  if (const std::string now = task_.data_fingerprint(); now != state.data_fingerprint)
    return other("other data", state.data_fingerprint, now);
  if (Status s = check_settings(state); !s) return s;
  tell_of_length(state);
  return {};
}

Status RunIdentity::check_settings(const TrainState& state) const {
  std::string differ, keep, change;
  for (const auto& [key, now] : settings_) {
    const auto then = state.settings.find(key);
    if (then == state.settings.end() || then->second == now) continue;
    const std::string both =
        std::string(key).append(" is ").append(now).append(", was ").append(then->second);
    if (config_.changes.contains(key)) {
      say_("from step " + std::to_string(state.counters.optimizer_step) + " on: " + both);
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

void RunIdentity::tell_of_length(const TrainState& state) const {
  const auto then = state.settings.find(kLength);
  const std::string now = std::to_string(config_.steps);
  if (then == state.settings.end() || then->second == now) return;
  const Schedule& schedule = config_.schedule;
  const std::string steps = "steps is " + now + ", was " + then->second;
  if (schedule.decay == Decay::constant) return say_(steps);
  char rate[24];
  std::snprintf(rate, sizeof rate, "%.4g",
                schedule.lr(state.counters.optimizer_step, state.counters.backoff));
  say_(steps + ": the " + word_for(schedule.decay) +
       " schedule is stretched over them, so the rate goes on at " + rate + " and not where it was");
}

}  // namespace nanquest::trainer
