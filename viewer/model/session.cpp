#include "viewer/model/session.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "probe/snapshot/series.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::is_regular_file(path, ec);
}

}  // namespace

Result<Session> Session::open(const std::string& path) {
  if (fs::path(path).filename() == fs::path(manifest_path("")).filename() && is_file(path)) {
    const fs::path run = fs::path(path).parent_path();
    return open(run.empty() ? "." : run.string());
  }
  if (const std::string snapshot = snapshot_beside(path); !snapshot.empty() && is_file(path)) {
    if (is_file(snapshot) || is_file(verdict_path(snapshot))) return open(snapshot);
    return Error{ErrorCode::bad_file, path + ": is what a replay left of " + snapshot + ", which is not here",
                 "give that snapshot or its run directory"};
  }
  Session session;
  session.path_ = path;
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  const bool has_verdict = is_file(verdict_path(path));
  if (!fs::exists(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": no such file or directory",
                 "give a run directory or a snapshot (…/incidents/step-*.h5)"};
  session.is_run_ = fs::is_directory(status);
  if (!session.is_run_ && !fs::is_regular_file(status) && !has_verdict)
    return Error{ErrorCode::bad_file, path + ": neither a directory nor a file",
                 "give a run directory or a snapshot"};
  if (Status loaded = session.load(); !loaded) return loaded.error();
  session.start_selection();
  return session;
}

void Session::note_reading(bool incidents) {
  static std::atomic<std::uint64_t> readings{0};
  content_ = ++readings;
  if (incidents) reading_ = content_;
}

Status Session::load() {
  note_reading();
  incidents_.clear();
  manifest_.reset();
  manifest_error_.clear();
  if (!is_run_) {
    stamps_ = stamps();  // before anything is read: what changes while it is read is read again
    IncidentEntry entry;
    if (auto named = parse_incident_name(path_)) entry.files = *named;
    entry.files.snapshot = path_;
    entry.snapshot = is_file(path_) ? Snapshot::here : Snapshot::lost;
    entry.files.verdict = is_file(verdict_path(path_)) ? verdict_path(path_) : "";
    entry.files.replay = is_file(replay_path(path_)) ? replay_path(path_) : "";
    incidents_.push_back(entry);
    load_incident(0);
    if (incident_ == nullptr && !verdict_) {
      if (entry.snapshot == Snapshot::lost)
        return Error{ErrorCode::bad_file, incidents_[0].verdict_error, ""};
      Result<SnapshotReader> again = SnapshotReader::open(path_);
      return again ? Error{ErrorCode::bad_file, incident_error_, ""} : again.error();
    }
    incidents_[0].files.step = incident_ ? incident_->doc.step : verdict_->step;
    incidents_[0].files.rank = incident_ ? incident_->doc.rank : verdict_->rank;
    return {};
  }
  Result<RunListing> listing = list_run(path_);
  if (!listing) return listing.error();
  listing_ = std::move(listing).value();
  stamps_ = stamps();  // as above
  if (!listing_.manifest.empty()) {
    Result<Manifest> manifest = read_manifest(path_);
    if (manifest)
      manifest_ = std::move(manifest).value();
    else
      manifest_error_ = manifest.error().text();
  }
  incidents_ = list_incidents(listing_, manifest_);
  note_written();
  load_series(0);
  return {};
}

void Session::load_series(std::int32_t rank) {
  note_reading(false);
  series_error_.clear();
  words_.clear();
  // While its file can't be read, as when it is being written, a series stays; those of another rank don't.
  if (listing_.series.empty() || rank != series_rank_) series_ = {};
  if (listing_.series.empty()) return;
  const SeriesFile* chosen = &listing_.series.front();
  for (const SeriesFile& file : listing_.series)
    if (file.rank == rank) chosen = &file;
  series_rank_ = rank;
  for (const SeriesFile& file : listing_.series) {
    if (&file != chosen && !incidents_.empty()) continue;
    Result<std::vector<SeriesTable>> tables = read_series(file.path);
    History history = tables ? History(*tables) : History();
    words_.push_back(word_of(file.rank, history));
    if (!tables) words_.back().error = tables.error().text();
    if (&file != chosen) continue;
    if (tables)
      series_ = std::move(history);
    else
      series_error_ = words_.back().error;
  }
}

void Session::load_verdict(IncidentEntry& entry) {
  verdict_.reset();
  entry.verdict_error.clear();
  if (entry.files.verdict.empty()) return;
  Result<Verdict> verdict = read_verdict(entry.files.verdict);
  if (!verdict) {
    entry.verdict_error = verdict.error().text();
    return;
  }
  verdict_ = std::move(verdict).value();
  entry.note(*verdict_);
}

void Session::load_incident(int row) {
  note_reading();
  incident_.reset();
  incident_error_.clear();
  verdict_.reset();
  forget_tensor();
  if (row < 0 || row >= static_cast<int>(incidents_.size())) return;
  IncidentEntry& entry = incidents_[static_cast<std::size_t>(row)];
  load_verdict(entry);
  if (is_run_ && entry.files.rank != series_rank_) load_series(entry.files.rank);
  if (entry.snapshot != Snapshot::here) {
    incident_error_ = entry.snapshot == Snapshot::lost
                          ? entry.files.snapshot + ": is not here (copy it from where the run was written)"
                          : "no snapshot of step " + std::to_string(entry.files.step) + " was written";
    return;
  }
  Result<SnapshotReader> reader = SnapshotReader::open(entry.files.snapshot);
  entry.error = reader ? "" : reader.error().text();
  if (reader) entry.note(reader->doc().gate);
  if (reader)
    incident_ = std::make_unique<OpenIncident>(std::move(reader).value(), entry.files.replay, verdict_);
  else
    incident_error_ = entry.error;
}

std::vector<int> Session::opening_order() const {
  std::vector<int> order(incidents_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return opens_before(incidents_[static_cast<std::size_t>(a)], incidents_[static_cast<std::size_t>(b)]);
  });
  return order;
}

void Session::start_selection() {
  constexpr int kMostAsked = 16;
  std::vector<int> order = opening_order();
  // Which gate failed is in the file where no manifest says it.
  for (int asked = 0; asked < kMostAsked && !order.empty(); ++asked, order = opening_order()) {
    const IncidentEntry& first = incidents_[static_cast<std::size_t>(order.front())];
    if (!first.gate.empty() || first.silent || first.snapshot != Snapshot::here || !first.error.empty())
      break;
    load_incident(order.front());
  }
  const auto nothing = [&] { return incident_ == nullptr && !verdict_; };
  select_incident(order.empty() ? -1 : order.front());
  for (std::size_t i = 1; i < order.size() && nothing(); ++i) select_incident(order[i]);
  if (!order.empty() && nothing()) select_incident(order.front());  // none can be read: the first says why
  keep_statistic();
}

/// Another history may lack the selected statistic. One without rows says nothing: another may come.
void Session::keep_statistic() {
  if (!history().empty() && !history().has(selection_.statistic))
    selection_.statistic = history().first_available();
}

const History& Session::history() const {
  return series_.empty() && incident_ ? incident_->history : series_;
}

}  // namespace nanquest::viewer
