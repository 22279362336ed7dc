#include "probe/snapshot/run_dir.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <tuple>

namespace nanquest {
namespace {

namespace fs = std::filesystem;

std::string join(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

std::string free_path(const std::string& directory, std::int64_t step, std::int32_t rank) {
  const std::string stem = rank_stem(step, rank);
  std::string path = join(directory, stem + ".h5");
  std::error_code error;
  for (int attempt = 2; fs::exists(path, error); ++attempt)
    path = join(directory, stem + "." + std::to_string(attempt) + ".h5");
  return path;
}

/// Removes `prefix` and a number after it from the front of `text`.
template <class T>
bool take(std::string_view& text, std::string_view prefix, T& number) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end.ptr - text.data()));
  return true;
}

std::string with_ending(const std::string& snapshot, const char* ending) {
  const bool h5 = snapshot.size() > 3 && snapshot.compare(snapshot.size() - 3, 3, ".h5") == 0;
  return (h5 ? snapshot.substr(0, snapshot.size() - 3) : snapshot) + ending;
}

std::string if_there(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) ? path : "";
}

/// Adds the other files of an incident, given its snapshot's path.
void look_beside(IncidentFiles& incident) {
  incident.verdict = if_there(verdict_path(incident.snapshot));
  incident.report = if_there(report_path(incident.snapshot));
  incident.replay = if_there(replay_path(incident.snapshot));
}

/// Names of the plain files in a directory; empty if it can't be read.
std::vector<std::string> files_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) out.push_back(at->path().string());
  }
  return out;
}

}  // namespace

std::string step_stem(std::int64_t step) {
  char text[48];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(step));
  return text;
}
std::string rank_stem(std::int64_t step, std::int32_t rank) {
  return step_stem(step) + ".r" + std::to_string(rank);
}

std::string manifest_path(const std::string& run_dir) {
  return join(run_dir, "manifest.json");
}
std::string series_path(const std::string& run_dir, std::int32_t rank) {
  return join(run_dir, "series.r" + std::to_string(rank) + ".h5");
}
std::string ranges_path(const std::string& run_dir, std::int32_t rank) {
  return join(run_dir, "ranges.r" + std::to_string(rank) + ".h5");
}
std::string incidents_dir(const std::string& run_dir) {
  return join(run_dir, "incidents");
}
std::string incident_path(const std::string& run_dir, std::int64_t step, std::int32_t rank) {
  return join(incidents_dir(run_dir), rank_stem(step, rank) + ".h5");
}
std::string checkpoints_dir(const std::string& run_dir) {
  return join(run_dir, "checkpoints");
}

bool is_restart(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  std::string_view rest = name;
  int number = 0;
  return take(rest, "restart-", number) && rest.empty();
}

std::string recordings_dir(const std::string& run_dir) {
  return join(run_dir, "recordings");
}

std::string free_incident_path(const std::string& run_dir, std::int64_t step, std::int32_t rank) {
  return free_path(incidents_dir(run_dir), step, rank);
}
std::string free_recording_path(const std::string& run_dir, std::int64_t step, std::int32_t rank) {
  return free_path(recordings_dir(run_dir), step, rank);
}

std::string verdict_path(const std::string& snapshot) {
  return with_ending(snapshot, ".json");
}
std::string report_path(const std::string& snapshot) {
  return with_ending(snapshot, ".md");
}
std::string replay_path(const std::string& snapshot) {
  return with_ending(snapshot, ".replay.h5");
}

std::string snapshot_beside(const std::string& path) {
  for (const std::string_view ending : {std::string_view(".replay.h5"), std::string_view(".json")})
    if (path.size() > ending.size() && path.ends_with(ending))
      return path.substr(0, path.size() - ending.size()) + ".h5";
  return "";
}

std::optional<StepFile> parse_step_file(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  std::string_view rest = name;
  StepFile out;
  if (!take(rest, "step-", out.step)) return std::nullopt;
  if (std::string_view after = rest; take(after, ".r", out.rank))
    rest = after;
  else
    out.rank = -1;
  if (rest.empty() || rest.front() != '.') return std::nullopt;
  out.ending = rest;
  return out;
}

std::optional<IncidentFiles> parse_incident_name(const std::string& path) {
  const auto file = parse_step_file(path);
  if (!file || file->rank < 0) return std::nullopt;
  IncidentFiles out;
  out.step = file->step;
  out.rank = file->rank;
  std::string_view rest = file->ending;
  if (rest != ".h5" && (!take(rest, ".", out.attempt) || rest != ".h5")) return std::nullopt;
  out.snapshot = path;
  return out;
}

Result<RunListing> list_run(const std::string& run_dir) try {
  std::error_code error;
  if (!fs::is_directory(run_dir, error))
    return Error{ErrorCode::bad_file, run_dir + ": not a directory",
                 "give the run directory that the training wrote"};
  if (fs::directory_iterator readable(run_dir, error); error)
    return Error{ErrorCode::io, run_dir + ": can't be read: " + error.message(), "look at its permissions"};
  RunListing out;
  out.run_dir = run_dir;
  out.manifest = if_there(manifest_path(run_dir));
  for (const std::string& path : files_in(run_dir)) {
    const std::string name = fs::path(path).filename().string();
    std::string_view rest = name;
    SeriesFile series;
    if (!take(rest, "series.r", series.rank) || rest != ".h5") continue;
    series.path = path;
    out.series.push_back(std::move(series));
  }
  for (const std::string& path : files_in(incidents_dir(run_dir))) {
    const bool verdict = path.ends_with(".json");
    std::optional<IncidentFiles> incident = parse_incident_name(verdict ? snapshot_beside(path) : path);
    if (!incident || (verdict && !if_there(incident->snapshot).empty())) continue;
    look_beside(*incident);
    (verdict ? out.lost : out.incidents).push_back(std::move(*incident));
  }
  std::sort(out.series.begin(), out.series.end(),
            [](const SeriesFile& a, const SeriesFile& b) { return a.rank < b.rank; });
  for (std::vector<IncidentFiles>* list : {&out.incidents, &out.lost})
    std::sort(list->begin(), list->end(), [](const IncidentFiles& a, const IncidentFiles& b) {
      return std::tie(a.step, a.rank, a.attempt) < std::tie(b.step, b.rank, b.attempt);
    });
  if (out.manifest.empty() && out.series.empty() && out.incidents.empty() && out.lost.empty())
    return Error{ErrorCode::bad_file, run_dir + ": holds no manifest, series or incidents",
                 "give the run directory that the training wrote"};
  return out;
} catch (const std::exception& e) {
  return Error{ErrorCode::io, run_dir + ": " + e.what(), ""};
}

}  // namespace nanquest
