#include "trainer/checkpoint/train_state.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

/// 2: contains settings, data and the story, and a checksum over all of that.
constexpr const char* kFormat = "nanquest.train_state.2";
constexpr std::string_view kFormats = "nanquest.train_state.";
constexpr std::string_view kSetting = "setting.";

/// Calls f(name, value) for every number of a state, for both writing and reading.
template <class State, class F>
void each_number(State& s, F&& f) {
  auto& c = s.counters;
  f("optimizer_step", c.optimizer_step);
  f("data_position", c.data_position);
  f("data_steps", c.data_steps);
  f("skipped", c.skipped);
  f("consecutive_skips", c.consecutive_skips);
  f("incidents", c.incidents);
  f("rollbacks", c.rollbacks);
  f("tokens", c.tokens);
  f("fell_back", c.fell_back);
  f("retried", c.retried);
  f("backoff", c.backoff);
  f("best_eval", c.best_eval);
  f("scaler.scale", s.scaler.scale);
  f("scaler.good_steps", s.scaler.good_steps);
  f("scaler.overflows", s.scaler.overflows);
  f("scaler.patience", s.scaler.patience);
  f("scaler.enabled", s.scaler.enabled);
}

std::string story_as_text(const Story& s) {
  nlohmann::json changes = nlohmann::json::array();
  for (const ScaleChange& c : s.scale_history) changes.push_back({c.step, c.from, c.to});
  const nlohmann::json story = {{"first_loss", s.first_loss},
                                {"first_incident_step", s.first_incident_step},
                                {"loss_at_incident", s.loss_at_incident},
                                {"last_eval", s.last_eval},
                                {"recent_losses", s.recent_losses},
                                {"incidents", s.incidents},
                                {"skipped_samples", s.skipped_samples},
                                {"scale_history", changes}};
  return story.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Throws nlohmann's exception for what `story_as_text` did not write.
Story story_of(const std::string& text) {
  const nlohmann::json story = nlohmann::json::parse(text);
  const auto number = [](const nlohmann::json& v) {  // JSON has no NaN: it is stored as null
    return v.is_null() ? std::nan("") : v.get<double>();
  };
  Story s;
  s.first_loss = number(story.at("first_loss"));
  s.first_incident_step = story.at("first_incident_step").get<std::int64_t>();
  s.loss_at_incident = number(story.at("loss_at_incident"));
  s.last_eval = number(story.at("last_eval"));
  for (const auto& loss : story.at("recent_losses")) s.recent_losses.push_back(number(loss));
  s.incidents = story.at("incidents").get<std::vector<std::string>>();
  s.skipped_samples = story.at("skipped_samples").get<std::vector<std::string>>();
  for (const auto& c : story.at("scale_history"))
    s.scale_history.push_back({c.at(0).get<std::int64_t>(), number(c.at(1)), number(c.at(2))});
  return s;
}

}  // namespace

Status save_state(const std::string& path, const TrainState& state) {
  std::map<std::string, std::string> metadata{{"kind", kFormat},
                                              {"fingerprint", state.fingerprint},
                                              {"data", state.data_fingerprint},
                                              {"story", story_as_text(state.story)}};
  for (const auto& [key, value] : state.settings) metadata[std::string(kSetting) + key] = value;
  each_number(state, [&](const char* name, const auto& value) {
    char text[40];
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
      std::snprintf(text, sizeof text, "%a", value);  // hexadecimal: exact
    else
      std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
    metadata[name] = text;
  });
  return write_safetensors(path, state.tensors, metadata);
}

Result<TrainState> load_state(const std::string& path) {
  Result<SafetensorsFile> file = read_safetensors(path);
  if (!file) return file.error();
  const auto& metadata = file->metadata;
  const auto kind = metadata.find("kind");
  if (kind == metadata.end() || !kind->second.starts_with(kFormats))
    return Error{ErrorCode::bad_file, path + ": not a checkpoint of this program's format (" + kFormat + ")",
                 "weights alone can't be resumed; start without --resume"};
  if (kind->second != kFormat)
    return Error{ErrorCode::bad_file,
                 path + ": a checkpoint of another version of this program (" + kind->second + ", not " +
                     kFormat + ")",
                 "finish that run with the version that began it"};
  if (!file->whole)
    return Error{ErrorCode::bad_file, path + ": its checksum is missing: the file was damaged",
                 "use an older checkpoint"};
  TrainState state;
  std::string missing;
  each_number(state, [&](const char* name, auto& value) {
    const auto found = metadata.find(name);
    char* end = nullptr;
    if (found == metadata.end() || found->second.empty()) {
      missing = name;
      return;
    }
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
      value = std::strtod(found->second.c_str(), &end);
    else
      value = static_cast<std::decay_t<decltype(value)>>(std::strtoll(found->second.c_str(), &end, 10));
    if (*end != '\0') missing = name;
  });
  if (!missing.empty())
    return Error{ErrorCode::bad_file, path + ": " + missing + " is missing or not a number",
                 "use an older checkpoint"};
  const auto text = [&](const char* name) {
    const auto found = metadata.find(name);
    return found != metadata.end() ? found->second : std::string();
  };
  state.fingerprint = text("fingerprint");
  state.data_fingerprint = text("data");
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kSetting)) state.settings[key.substr(kSetting.size())] = value;
  try {
    state.story = story_of(text("story"));
  } catch (const nlohmann::json::exception&) {
    return Error{ErrorCode::bad_file, path + ": its story is missing or damaged", "use an older checkpoint"};
  }
  state.tensors = std::move(file->tensors);
  return state;
}

}  // namespace nanquest::trainer
