#include "viewer/model/session.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <system_error>
#include <utility>

#include "probe/snapshot/series.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// Single quotes for a shell, only where they are needed.
std::string shell_quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./-+=:,@%") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The snapshot that a replay file belongs to; "" if the file is not called like one.
std::string replayed_snapshot(const std::string& path) {
  const std::string ending = ".replay.h5";
  if (path.size() <= ending.size() || !path.ends_with(ending)) return "";
  return path.substr(0, path.size() - ending.size()) + ".h5";
}

}  // namespace

Result<Session> Session::open(const std::string& path) {
  if (const std::string snapshot = replayed_snapshot(path); !snapshot.empty()) {
    std::error_code ec;
    if (fs::is_regular_file(snapshot, ec)) return open(snapshot);
    return Error{ErrorCode::bad_file, path + ": is what a replay left of " + snapshot + ", which is not here",
                 "give that snapshot or its run directory"};
  }
  Session session;
  session.path_ = path;
  std::error_code ec;
  const fs::file_status status = fs::status(path, ec);
  if (!fs::exists(status))
    return Error{ErrorCode::bad_file, path + ": no such file or directory",
                 "give a run directory or a snapshot (…/incidents/step-*.h5)"};
  session.is_run_ = fs::is_directory(status);
  if (!session.is_run_ && !fs::is_regular_file(status))
    return Error{ErrorCode::bad_file, path + ": neither a directory nor a file",
                 "give a run directory or a snapshot"};
  if (Status loaded = session.load(); !loaded) return loaded.error();
  session.start_selection();
  return session;
}

std::string Session::title() const {
  fs::path path(path_);
  if (path.filename().empty()) path = path.parent_path();
  if (path.filename() == "." || path.filename() == "..") {
    std::error_code ec;
    path = fs::canonical(path, ec);
  }
  return path.filename().string();
}

Status Session::load() {
  incidents_.clear();
  manifest_.reset();
  manifest_error_.clear();
  if (!is_run_) {
    IncidentEntry entry;
    if (auto named = parse_incident_name(path_)) entry.files = *named;
    entry.files.snapshot = path_;
    std::error_code ec;
    entry.files.verdict = fs::exists(verdict_path(path_), ec) ? verdict_path(path_) : "";
    entry.files.replay = fs::exists(replay_path(path_), ec) ? replay_path(path_) : "";
    incidents_.push_back(entry);
    load_incident(0);
    if (incident_ == nullptr) {
      Result<SnapshotReader> again = SnapshotReader::open(path_);
      return again ? Error{ErrorCode::bad_file, incident_error_, ""} : again.error();
    }
    incidents_[0].files.step = incident_->doc.step;
    incidents_[0].files.rank = incident_->doc.rank;
    stamp_ = stamp();
    return {};
  }
  Result<RunListing> listing = list_run(path_);
  if (!listing) return listing.error();
  listing_ = std::move(listing).value();
  if (!listing_.manifest.empty()) {
    Result<Manifest> manifest = read_manifest(path_);
    if (manifest)
      manifest_ = std::move(manifest).value();
    else
      manifest_error_ = manifest.error().text();
  }
  for (const IncidentFiles& files : listing_.incidents) {
    IncidentEntry entry;
    entry.files = files;
    if (manifest_)
      for (const ManifestIncident& known : manifest_->incidents)
        if (!known.file.empty() && fs::path(known.file).filename() == fs::path(files.snapshot).filename()) {
          entry.gate = known.gate;
          entry.summary = known.summary;
        }
    if (!files.verdict.empty()) {
      const Result<Verdict> verdict = read_verdict(files.verdict);
      if (verdict)
        entry.note(*verdict);
      else
        entry.verdict_error = verdict.error().text();
    }
    incidents_.push_back(std::move(entry));
  }
  load_series();
  stamp_ = stamp();
  return {};
}

void Session::load_series() {
  series_error_.clear();
  if (listing_.series.empty()) return;
  const std::int32_t rank = incident_ ? incident_->doc.rank : listing_.series.front().rank;
  const SeriesFile* chosen = &listing_.series.front();
  for (const SeriesFile& file : listing_.series)
    if (file.rank == rank) chosen = &file;
  Result<std::vector<SeriesTable>> tables = read_series(chosen->path);
  if (tables)
    series_ = History(*tables);
  else
    series_error_ = tables.error().text();
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
  incident_.reset();
  incident_error_.clear();
  verdict_.reset();
  detail_.reset();
  slice_.reset();
  if (row < 0 || row >= static_cast<int>(incidents_.size())) return;
  IncidentEntry& entry = incidents_[static_cast<std::size_t>(row)];
  load_verdict(entry);
  Result<SnapshotReader> reader = SnapshotReader::open(entry.files.snapshot);
  entry.error = reader ? "" : reader.error().text();
  if (reader)
    incident_ = std::make_unique<OpenIncident>(std::move(reader).value(), entry.files.replay);
  else
    incident_error_ = entry.error;
}

void Session::start_selection() {
  std::vector<int> order(incidents_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return opens_before(incidents_[static_cast<std::size_t>(a)], incidents_[static_cast<std::size_t>(b)]);
  });
  const auto nothing = [&] { return incident_ == nullptr && !verdict_; };
  select_incident(order.empty() ? -1 : order.front());
  for (std::size_t i = 1; i < order.size() && nothing(); ++i) select_incident(order[i]);
  if (!order.empty() && nothing()) select_incident(order.front());  // none can be read: the first says why
  if (!history().has(selection_.statistic)) selection_.statistic = history().first_available();
}

std::vector<std::string> Session::complaints() const {
  std::vector<std::string> all;
  for (const std::string& error : {lost_, manifest_error_, series_error_})
    if (!error.empty()) all.push_back(error);
  for (const IncidentEntry& entry : incidents_)
    for (const std::string& error : {entry.error, entry.verdict_error})
      if (!error.empty()) all.push_back(error);
  if (incident_ && !incident_->replay_error.empty()) all.push_back(incident_->replay_error);
  return all;
}

const History& Session::history() const {
  return series_.empty() && incident_ ? incident_->history : series_;
}

std::string Session::replay_command() const {
  if (selection_.incident < 0) return "";
  const std::string& snapshot = incidents_[static_cast<std::size_t>(selection_.incident)].files.snapshot;
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(snapshot, ec);
  return "nanquest-replay " + shell_quoted(ec ? snapshot : whole.string());
}

std::string Session::status() const {
  if (!lost_.empty()) return "gone: moved, renamed or removed while it was shown";
  if (!manifest_) return "";
  return manifest_->status + (manifest_->outcome.empty() ? "" : ": " + manifest_->outcome);
}

}  // namespace nanquest::viewer
