#include "probe/attach/options.h"

#include <nlohmann/json.hpp>

namespace nanquest::attach {
namespace {

using Json = nlohmann::json;

Error wrong(const std::string& key, const std::string& expected) {
  return Error{ErrorCode::usage, "option " + key + " must be " + expected, "see nanquest run --help"};
}

Status read_int(const Json& json, const char* key, int& into, int least) {
  if (!json.contains(key)) return {};
  if (!json[key].is_number_integer() || json[key].get<long long>() < least)
    return wrong(key, std::string("a whole number of at least ").append(std::to_string(least)));
  into = json[key].get<int>();
  return {};
}

Status read_muted(const Json& json, std::set<std::pair<std::string, std::string>>& into) {
  if (!json.contains("muted")) return {};
  for (const Json& place : json["muted"]) {
    if (!place.is_array() || place.size() != 2 || !place[0].is_string() || !place[1].is_string())
      return wrong("muted", "a list of pairs of operation and module");
    into.emplace(place[0].get<std::string>(), place[1].get<std::string>());
  }
  return {};
}

Status read_steps(const Json& json, std::set<std::int64_t>& into) {
  if (!json.contains("record_steps")) return {};
  for (const Json& step : json["record_steps"]) {
    if (!step.is_number_integer() || step.get<std::int64_t>() < 0)
      return wrong("record_steps", "a list of step numbers, counted from 0");
    into.insert(step.get<std::int64_t>());
  }
  return {};
}

}  // namespace

Result<AttachOptions> parse_options(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{ErrorCode::usage, "the options are no JSON object", ""};
  AttachOptions options;
  options.probe.level = Level::trace;
  const std::string level =
      json.value("level", Json("trace")).is_string() ? json.value("level", "trace") : "";
  if (level == "guard")
    options.probe.level = Level::guard;
  else if (level == "watch")
    options.probe.level = Level::watch;
  else if (level != "trace")
    return wrong("level", "guard, trace or watch");
  if (json.contains("run_dir")) {
    if (!json["run_dir"].is_string() || json["run_dir"].get<std::string>().empty())
      return wrong("run_dir", "a path");
    options.probe.run_dir = json["run_dir"].get<std::string>();
  }
  if (json.contains("tape_folder")) {
    if (!json["tape_folder"].is_string()) return wrong("tape_folder", "a path");
    options.tape_folder = json["tape_folder"].get<std::string>();
  }
  if (json.contains("frozen_weights")) {
    const Json& word = json["frozen_weights"];
    if (word != "reference" && word != "embed") return wrong("frozen_weights", "reference or embed");
    if (word == "embed") options.probe.frozen_weights = FrozenWeights::embed;
  }
  if (json.contains("skip_bad_updates")) {
    if (!json["skip_bad_updates"].is_boolean()) return wrong("skip_bad_updates", "true or false");
    options.skip_bad_updates = json["skip_bad_updates"].get<bool>();
  }
  if (json.contains("on_forecast")) {
    const Json& word = json["on_forecast"];
    if (word != "say" && word != "stop" && word != "off") return wrong("on_forecast", "say, stop or off");
    options.forecast = word != "off";
  }
  if (json.contains("max_disk")) {
    if (!json["max_disk"].is_number_unsigned()) return wrong("max_disk", "a number of bytes");
    options.max_disk = json["max_disk"].get<std::uint64_t>();
  }
  int rank = 0, world = 1;
  for (const Status& read : {read_int(json, "watch_every", options.watch_every, 0),
                             read_int(json, "watch_first", options.watch_first, 0),
                             read_int(json, "watch_after", options.watch_after, 0),
                             read_int(json, "keep_steps", options.keep_steps, 0),
                             read_int(json, "keep_percent", options.keep_percent, 0),
                             read_int(json, "keep_memory_percent", options.keep_memory_percent, 0),
                             read_int(json, "tape", options.tape, 0),
                             read_int(json, "max_incidents", options.probe.max_incidents, 0),
                             read_int(json, "few_files_from", options.few_files_from, 0),
                             read_steps(json, options.record_steps), read_muted(json, options.muted),
                             read_int(json, "rank", rank, 0), read_int(json, "world_size", world, 1)})
    if (!read) return read.error();
  options.probe.rank = rank;
  options.probe.world_size = world;
  if (json.contains("config") && json["config"].is_object())
    for (const auto& [key, value] : json["config"].items())
      options.probe.config[key] = value.is_string() ? value.get<std::string>() : value.dump();
  return options;
}

}  // namespace nanquest::attach
