// What a session opens, in which order, and what it says about that.
#include "viewer/model/session.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "probe/trace/culprit.h"
#include "viewer/model/numbers.h"
#include "viewer/model/path_words.h"
#include "viewer/model/run_state.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

}  // namespace

Session Session::nothing(const std::string& path, const std::string& why) {
  Session session;
  session.files_ = RunFiles(path, false);
  session.title_ = last_name(path);
  session.nothing_ = true;
  session.nothing_because_ = why;
  session.note_reading();
  return session;
}

Result<Session> Session::open(const std::string& path, Progress* progress) {
  if (fs::path(path).filename() == fs::path(manifest_path("")).filename() && is_file(path)) {
    const fs::path run = fs::path(path).parent_path();
    return open(run.empty() ? "." : run.string(), progress);
  }
  if (is_step_diff(path)) {
    Result<StepDiff> diff = read_step_diff(path);
    if (!diff) return diff.error();
    Session of_two = nothing(path, diff->headline());
    of_two.diff_ = std::make_shared<StepDiff>(std::move(diff).value());
    return of_two;
  }
  if (const std::string snapshot = snapshot_beside(path); !snapshot.empty() && is_file(path)) {
    if (is_file(snapshot) || is_file(verdict_path(snapshot))) return open(snapshot, progress);
    return Error{ErrorCode::bad_file, path + ": is what a replay left of " + snapshot + ", which is not here",
                 "give that snapshot or its run directory"};
  }
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  const bool has_verdict = is_file(verdict_path(path));
  if (!fs::exists(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": no such file or directory",
                 "give a run directory or a snapshot (…/incidents/step-*.h5)"};
  const bool is_run = fs::is_directory(status);
  if (!is_run && !fs::is_regular_file(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": neither a directory nor a file",
                 "give a run directory or a snapshot"};
  Session session;
  session.files_ = RunFiles(path, is_run);
  session.title_ = last_name(path);
  session.progress_ = progress;
  if (Status loaded = session.load(); !loaded) {
    Result<RunFolder> folder = is_run ? read_run_folder(path, progress) : Result<RunFolder>(loaded.error());
    if (!folder) return loaded.error();
    Session of_runs = nothing(path, folder->headline());
    of_runs.folder_ = std::make_shared<RunFolder>(std::move(folder).value());
    return of_runs;
  }
  session.start_selection();
  session.progress_ = nullptr;
  return session;
}

std::vector<IncidentEntry>& Session::own_incidents() {
  auto own = std::make_shared<std::vector<IncidentEntry>>(*incidents_);
  std::vector<IncidentEntry>& list = *own;
  incidents_ = std::move(own);
  return list;
}

void Session::note_reading(bool incidents) {
  static std::atomic<std::uint64_t> readings{0};
  content_ = ++readings;
  if (incidents) reading_ = content_;
}

Status Session::load() {
  note_reading();
  incidents_ = std::make_shared<std::vector<IncidentEntry>>();
  manifest_.reset();
  manifest_error_.clear();
  return is_run() ? load_run() : load_file();
}

Status Session::load_file() {
  files_.note_read(files_.stamps());
  IncidentEntry entry;
  if (auto named = parse_incident_name(path())) entry.files = *named;
  entry.files.snapshot = path();
  entry.snapshot = is_file(path()) ? Snapshot::here : Snapshot::lost;
  entry.files.verdict = is_file(verdict_path(path())) ? verdict_path(path()) : "";
  entry.files.replay = is_file(replay_path(path())) ? replay_path(path()) : "";
  own_incidents().push_back(entry);
  load_incident(0);
  if (!shown_->nothing()) return {};
  if (entry.snapshot == Snapshot::lost) return Error{ErrorCode::bad_file, incidents()[0].verdict_error, ""};
  Result<SnapshotReader> again = open_tasted(path());
  return again ? Error{ErrorCode::bad_file, incident_error(), ""} : again.error();
}

Status Session::load_run() {
  if (Status listed = files_.list(); !listed) return listed;
  files_.note_read(files_.stamps());
  if (!files_.listing().manifest.empty()) {
    Result<Manifest> manifest = read_manifest(path());
    if (manifest)
      manifest_ = std::move(manifest).value();
    else
      manifest_error_ = manifest.error().text();
  }
  incidents_ = std::make_shared<std::vector<IncidentEntry>>(list_incidents(files_.listing(), manifest_));
  files_.note_written();
  series_.begin_anew();
  load_series(0);
  return {};
}

void Session::load_incident(int row) {
  note_reading();
  shown_ = std::make_shared<const ReadIncident>();
  values_ = {};
  if (row < 0 || row >= static_cast<int>(incidents().size()) || stopped()) return;
  IncidentEntry& entry = own_incidents()[static_cast<std::size_t>(row)];
  if (is_run() && entry.files.rank != series_.rank()) load_series(entry.files.rank);
  const bool many_ranks = manifest_ && manifest_->world_size > 1;
  shown_ = std::make_shared<const ReadIncident>(read_incident(entry, is_run(), many_ranks, progress_));
}

std::vector<int> Session::opening_order() const {
  std::vector<int> order(incidents().size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return opens_before(incidents()[static_cast<std::size_t>(a)], incidents()[static_cast<std::size_t>(b)]);
  });
  return order;
}

void Session::start_selection() {
  constexpr int kMostAsked = 16;
  std::vector<int> order = opening_order();
  // Which gate failed is in the file where no manifest says it.
  for (int asked = 0; asked < kMostAsked && !order.empty(); ++asked, order = opening_order()) {
    const IncidentEntry& first = incidents()[static_cast<std::size_t>(order.front())];
    if (!first.gate.empty() || first.silent || first.snapshot != Snapshot::here || !first.error.empty())
      break;
    load_incident(order.front());
  }
  select_incident(order.empty() ? -1 : order.front());
  for (std::size_t i = 1; i < order.size() && shown_->nothing(); ++i) select_incident(order[i]);
  if (!order.empty() && shown_->nothing())
    select_incident(order.front());  // none can be read: reports the first
                                     // one's error
  if (const int maker = rank_that_made_it(); maker >= 0) select_incident(maker);
  keep_statistic();
}

/// For an incident where another rank's bad values arrived, and the step was not replayed: the row of a rank
/// that made its own, or -1. Notes what the files of these ranks say.
int Session::rank_that_made_it() {
  constexpr int kMostAsked = 8;
  if (incident() == nullptr || verdict() || arrived_by(incident()->doc).empty()) return -1;
  const IncidentFiles shown = entry()->files;
  int maker = -1, asked = 0;
  for (std::size_t row = 0; row < incidents().size() && asked < kMostAsked && !stopped(); ++row) {
    const IncidentFiles& files = incidents()[row].files;
    if (files.step != shown.step || files.rank == shown.rank || incidents()[row].snapshot != Snapshot::here)
      continue;
    ++asked;
    const Result<SnapshotReader> reader = open_tasted(files.snapshot);
    if (!reader) continue;
    own_incidents()[row].note(reader->doc());
    if (maker < 0 && reader->doc().culprit.op >= 0 && arrived_by(reader->doc()).empty())
      maker = static_cast<int>(row);
  }
  return maker;
}

const History& Session::history() const {
  return series_.history().empty() && incident() != nullptr ? incident()->history : series_.history();
}

/// If incidents are known, series of ranks without incidents are not summarised.
void Session::load_series(std::int32_t rank) {
  note_reading(false);
  series_.read(files_.listing(), rank, incidents().empty(), progress_);
}

std::optional<std::pair<double, double>> Session::steps_shown() const {
  std::optional<std::pair<double, double>> span;
  const auto add = [&](double first, double last) {
    span =
        span ? std::pair(std::min(span->first, first), std::max(span->second, last)) : std::pair(first, last);
  };
  const auto add_series = [&](const History& history) {
    if (!history.empty()) add(history.steps().front(), history.steps().back());
  };
  add_series(history());
  for (const auto& other : others()) add_series(other->history());
  // A run that is stopped by an incident has no row of that step.
  for (const IncidentEntry& entry : incidents()) {
    const auto step = static_cast<double>(entry.files.step);
    add(step, step);
  }
  return span;
}

std::string Session::age_text() const {
  return is_run() ? viewer::age_text(files_.written()) : "";
}

std::vector<std::string> Session::complaints() const {
  std::vector<std::string> all;
  for (const std::string& error : {lost_, manifest_error_, headroom_error(), shown_->rehearsed_error})
    if (!error.empty()) all.push_back(error);
  for (const SeriesWord& word : series_words())
    if (!word.error.empty()) all.push_back(word.error);
  for (const IncidentEntry& entry : incidents())
    for (const std::string& error : {entry.error, entry.verdict_error})
      if (!error.empty()) all.push_back(error);
  if (incident() != nullptr && !incident()->replay_error.empty()) all.push_back(incident()->replay_error);
  return all;
}

std::string Session::lost_series() const {
  if (!is_run() || !files_.listing().series.empty() || !manifest_) return "";
  std::string lost = "the run's series file is not here";
  if (history().empty()) return lost;
  return lost + "; steps " + exact_number(history().steps().front()) + " to " +
         exact_number(history().steps().back()) + " are those that the incident's file holds";
}

std::string Session::status() const {
  if (!lost_.empty()) return "gone: moved, renamed or removed while it was shown";
  return manifest_ ? status_text(manifest_->status, manifest_->outcome, files_.written()) : "";
}

}  // namespace nanquest::viewer
