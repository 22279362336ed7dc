#include "probe/attach/options.h"

#include <initializer_list>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace nanquest::attach {
namespace {

using Json = nlohmann::json;

/// Reads values from an object and remembers the first error.
class Reader {
 public:
  explicit Reader(Json json) : left_(std::move(json)) {}

  template <typename Value>
  void read(const char* key, Value& into) {
    if (error_) return;
    const auto found = left_.find(key);
    if (found == left_.end()) {
      error_ = Error{ErrorCode::usage, std::string("option ") + key + " is missing", ""};
      return;
    }
    try {
      into = found->get<Value>();
      left_.erase(found);
    } catch (const Json::exception&) {
      error_ = Error{ErrorCode::usage, std::string("option ") + key + " is " + found->dump(), ""};
    }
  }

  /// One of a few words, as its index among them.
  template <typename Value>
  void read(const char* key, Value& into, std::initializer_list<std::pair<const char*, Value>> words) {
    std::string word;
    read(key, word);
    for (const auto& [name, value] : words)
      if (word == name) {
        into = value;
        return;
      }
    if (!error_) error_ = Error{ErrorCode::usage, std::string("option ") + key + " is " + word, ""};
  }

  Status end() const {
    if (error_) return *error_;
    if (left_.empty()) return {};
    return Error{ErrorCode::usage, "option " + left_.items().begin().key() + " is unknown", ""};
  }

 private:
  Json left_;
  std::optional<Error> error_;
};

}  // namespace

Result<AttachOptions> parse_options(const std::string& text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Error{ErrorCode::usage, "the options are no JSON object", ""};
  Reader reader(std::move(json));
  AttachOptions options;
  std::string on_incident;  // the caller checks it
  reader.read("run_dir", options.probe.run_dir);
  reader.read("level", options.probe.level,
              {{"guard", Level::guard}, {"trace", Level::trace}, {"watch", Level::watch}});
  reader.read("watch_every", options.watch_every);
  reader.read("watch_percent", options.watch_percent);
  reader.read("watch_first", options.watch_first);
  reader.read("watch_after", options.watch_after);
  reader.read("keep_steps", options.keep_steps);
  reader.read("keep_percent", options.keep_percent);
  reader.read("keep_memory_percent", options.keep_memory_percent);
  reader.read("tape", options.tape);
  reader.read("tape_folder", options.tape_folder);
  reader.read("max_incidents", options.probe.max_incidents);
  reader.read("few_files_from", options.few_files_from);
  reader.read("record_steps", options.record_steps);
  reader.read("audit", options.audit);
  reader.read("on_incident", on_incident);
  reader.read("gate", options.gate_later, {{"later", true}, {"now", false}});
  options.gate_withholds = on_incident != "continue";
  using OnSpike = AttachOptions::OnSpike;
  reader.read(
      "on_spike", options.on_spike,
      {{"record", OnSpike::record}, {"skip", OnSpike::skip}, {"stop", OnSpike::stop}, {"off", OnSpike::off}});
  if (options.on_spike == OnSpike::skip || options.on_spike == OnSpike::stop) options.gate_later = false;
  reader.read("on_forecast", options.forecast, {{"say", true}, {"stop", true}, {"off", false}});
  reader.read("max_disk", options.max_disk);
  reader.read("frozen_weights", options.probe.frozen_weights,
              {{"reference", FrozenWeights::reference}, {"embed", FrozenWeights::embed}});
  reader.read("skip_bad_updates", options.skip_bad_updates);
  reader.read("muted", options.muted);
  reader.read("rank", options.probe.rank);
  reader.read("world_size", options.probe.world_size);
  reader.read("config", options.probe.config);
  if (const Status read = reader.end(); !read) return read.error();
  return options;
}

}  // namespace nanquest::attach
