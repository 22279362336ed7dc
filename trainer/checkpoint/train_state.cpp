#include "trainer/checkpoint/train_state.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <type_traits>

#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

constexpr const char* kFormat = "nanquest.train_state.1";

/// Calls f(name, value) for every number of a state, for writing and for reading alike.
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

}  // namespace

Status save_state(const std::string& path, const TrainState& state) {
  std::map<std::string, std::string> metadata{{"kind", kFormat}, {"fingerprint", state.fingerprint}};
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
  if (const auto kind = metadata.find("kind"); kind == metadata.end() || kind->second != kFormat)
    return Error{ErrorCode::bad_file, path + ": not a checkpoint of this program's format (" + kFormat + ")",
                 "weights alone can't be resumed; start without --resume"};
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
  if (const auto found = metadata.find("fingerprint"); found != metadata.end())
    state.fingerprint = found->second;
  state.tensors = std::move(file->tensors);
  return state;
}

}  // namespace nanquest::trainer
