#include "trainer/cli/rehearsal_origin.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_claim.h"
#include "probe/snapshot/run_dir.h"
#include "trainer/checkpoint/state_files.h"

namespace nanquest::trainer {
namespace fs = std::filesystem;
namespace {

struct Kept {
  std::string path;
  TrainState state;
};

/// The step in question and its snapshot. `earliest`: the step of the requested state.
Status find_step(Origin& o, const OriginWish& wish, const std::vector<Kept>& kept,
                 const std::vector<ManifestIncident>& happened, std::int64_t earliest) {
  const Result<RunListing> run = list_run(o.run_dir);
  if (!run) return run.error();
  std::optional<std::int64_t> step = wish.step;
  // In the order in which they happened: after a rollback an earlier step may follow.
  for (const ManifestIncident& incident : happened)
    if (!step && incident.step >= earliest) step = incident.step;
  for (const IncidentFiles& incident : run->incidents)
    if (!step && incident.step >= earliest) step = incident.step;
  // At level off there are no snapshots; a checkpoint remembers.
  for (const Kept& k : kept)
    if (const std::int64_t told = k.state.story.first_incident_step; told >= earliest) {
      if (!step) step = told;
      o.incident = o.incident || told == *step;
    }
  if (!step)
    return Error{ErrorCode::usage,
                 o.run_dir + ": no incident on record" +
                     (earliest > 0 ? " from step " + std::to_string(earliest) + " on" : ""),
                 "give --step N to rehearse any of its steps"};
  o.step = *step;
  for (const IncidentFiles& incident : run->incidents) {
    if (incident.step != *step || !o.snapshot.empty()) continue;
    o.incident = true;
    o.rank = incident.rank;
    o.snapshot = incident.snapshot;
  }
  return {};
}

/// Losses on record before the step; none if the file is missing.
std::map<std::int64_t, double> recorded_losses(const std::string& run_dir, std::int64_t before) {
  std::map<std::int64_t, double> losses;
  std::ifstream in(run_dir + "/" + kMetricsJsonl);
  for (std::string line; std::getline(in, line);) {
    const nlohmann::json j = nlohmann::json::parse(line, nullptr, false);
    if (!j.is_object() || !j.contains("step") || !j.contains("loss") || !j["step"].is_number_integer())
      continue;
    const auto step = j["step"].get<std::int64_t>();
    if (step < before && j["loss"].is_number()) losses[step] = j["loss"].get<double>();
  }
  return losses;
}

/// The complete checkpoints of a run, the newest first.
std::vector<Kept> states_of(const std::string& run_dir) {
  std::vector<Kept> kept;
  for (const std::string& path : state_files(checkpoints_dir(run_dir)))
    if (Result<TrainState> state = load_state(path)) kept.push_back({path, std::move(*state)});
  return kept;
}

void begin_at(Origin& o, const Kept& k) {
  o.state = k.state;
  o.began = k.path;
  for (const auto& [key, text] : k.state.settings) o.settings[key] = text;
}

}  // namespace

Result<Origin> find_origin(const OriginWish& wish) {
  Origin o;
  std::error_code ec;
  const bool folder = fs::is_directory(wish.given, ec);
  if (!folder && !fs::exists(wish.given, ec))
    return Error{ErrorCode::bad_file, wish.given + ": no such file or folder",
                 "give a run's folder, or one of its checkpoints/state-*.safetensors"};
  std::optional<Kept> asked;
  if (!folder) {
    Result<TrainState> state = load_state(wish.given);
    if (!state)
      return Error{state.error().code, state.error().message,
                   "give the run's folder, or one of its checkpoints/state-*.safetensors"};
    asked = {wish.given, std::move(*state)};
  }
  o.run_dir = folder ? wish.given : fs::absolute(wish.given, ec).parent_path().parent_path().string();
  Result<Manifest> manifest = read_manifest(o.run_dir);
  if (!manifest)
    return Error{manifest.error().code, manifest.error().message,
                 "a rehearsal needs the settings of the run, which a run at --level off does not keep"};
  o.settings = manifest->config;
  o.command = manifest->command;
  const std::vector<Kept> kept = states_of(o.run_dir);
  if (Status s =
          find_step(o, wish, kept, manifest->incidents, asked ? asked->state.counters.optimizer_step : 0);
      !s)
    return s.error();
  const std::size_t earlier = static_cast<std::size_t>(
      kept.empty() ? 0
                   : std::count_if(kept.front().state.story.incidents.begin(),
                                   kept.front().state.story.incidents.end(), [&](const std::string& file) {
                                     const auto incident = parse_incident_name(file);
                                     return incident && incident->step < o.step;
                                   }));
  if (asked) {
    begin_at(o, *asked);
  } else {
    for (const Kept& k : kept) {
      const Counters& c = k.state.counters;
      // A state saved after a rollback can be of an early step too.
      const bool of_before = static_cast<std::size_t>(c.incidents) <= earlier;
      if (of_before && c.optimizer_step <= o.step - wish.before && c.optimizer_step >= o.first_step())
        begin_at(o, k);
    }
  }
  if (!o.state) o.began = "its beginning";
  if (o.first_step() > o.step)
    return Error{
        ErrorCode::usage,
        o.began + ": of step " + std::to_string(o.first_step()) + ", after step " + std::to_string(o.step),
        "give an earlier checkpoint, or the run's folder"};
  if (!kept.empty()) {
    o.data_fingerprint = kept.front().state.data_fingerprint;
    const std::vector<std::string>& all = kept.front().state.story.skipped_samples;
    const std::size_t then = o.state ? o.state->story.skipped_samples.size() : 0;
    o.quarantined_later.insert(all.begin() + static_cast<std::ptrdiff_t>(std::min(then, all.size())),
                               all.end());
  }
  // After a rollback the record is of steps that were repeated, with other samples.
  const std::int64_t rollbacks = o.state ? o.state->counters.rollbacks : 0;
  if (kept.empty() || kept.front().state.counters.rollbacks == rollbacks)
    o.losses = recorded_losses(o.run_dir, o.step);
  return o;
}

}  // namespace nanquest::trainer
