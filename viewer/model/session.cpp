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

std::string file_stamp(const std::string& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) return path + "?";
  const auto time = fs::last_write_time(path, ec);
  return path + ":" + std::to_string(size) + ":" + std::to_string(time.time_since_epoch().count()) + ";";
}

bool same_trace(const SnapshotDoc& a, const SnapshotDoc& b) {
  const auto same_op = [](const OpRow& x, const OpRow& y) {
    return x.name == y.name && x.overload == y.overload;
  };
  return a.step == b.step && a.rank == b.rank && a.tensors.size() == b.tensors.size() &&
         a.written == b.written &&
         std::equal(a.ops.begin(), a.ops.end(), b.ops.begin(), b.ops.end(), same_op);
}

/// The doc of a recording; with the statistics and the culprit of its replay if it was recorded without.
SnapshotDoc told(const SnapshotDoc& recorded, const std::string& replay_file, std::string& error) {
  SnapshotDoc doc = recorded;
  if (doc.basis != "survivors" || replay_file.empty()) return doc;
  const Result<SnapshotReader> replay = SnapshotReader::open(replay_file);
  if (!replay) {
    error = replay.error().text();
    return doc;
  }
  const SnapshotDoc& found = replay->doc();
  if (found.ops.empty()) return doc;  // written by a version that kept no trace
  if (!same_trace(doc, found)) {
    error = replay_file + ": is the replay of another recording; make it again with nanquest-replay SNAPSHOT";
    return doc;
  }
  doc.stats = found.stats;
  doc.culprit = found.culprit;
  for (std::size_t i = 0; i < doc.tensors.size(); ++i) doc.tensors[i].stats = found.tensors[i].stats;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) doc.ops[i].flags = found.ops[i].flags;
  return doc;
}

}  // namespace

OpenIncident::OpenIncident(SnapshotReader opened, const std::string& replay_file)
    : reader(std::move(opened)),
      doc(told(reader.doc(), replay_file, replay_error)),
      trace(doc),
      history(doc.history) {
  Result<std::vector<StoredTensor>> list = list_tensors(reader);
  if (list)
    tensors = std::move(list).value();
  else
    tensors_error = list.error().text();
}

Result<Session> Session::open(const std::string& path) {
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
    if (!files.verdict.empty())
      if (Result<Verdict> verdict = read_verdict(files.verdict)) {
        entry.cause = verdict->found ? word(verdict->cause) : "nothing harmful";
        entry.confidence = verdict->confidence;
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

void Session::load_incident(int row) {
  incident_.reset();
  incident_error_.clear();
  detail_.reset();
  slice_.reset();
  if (row < 0 || row >= static_cast<int>(incidents_.size())) return;
  IncidentEntry& entry = incidents_[static_cast<std::size_t>(row)];
  Result<SnapshotReader> reader = SnapshotReader::open(entry.files.snapshot);
  entry.error = reader ? "" : reader.error().text();
  if (!reader) {
    incident_error_ = entry.error;
    return;
  }
  incident_ = std::make_unique<OpenIncident>(std::move(reader).value(), entry.files.replay);
  if (entry.files.verdict.empty()) return;
  Result<Verdict> verdict = read_verdict(entry.files.verdict);
  if (verdict)
    incident_->verdict = std::move(verdict).value();
  else
    incident_->verdict_error = verdict.error().text();
  if (incident_->verdict)
    entry.cause = incident_->verdict->found ? word(incident_->verdict->cause) : "nothing harmful";
  if (incident_->verdict) entry.confidence = incident_->verdict->confidence;
}

void Session::start_selection() {
  std::vector<int> order(incidents_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(),
                        [&](int row) { return !incidents_[static_cast<std::size_t>(row)].cause.empty(); });
  select_incident(order.empty() ? -1 : order.front());
  for (std::size_t i = 1; i < order.size() && incident_ == nullptr; ++i) select_incident(order[i]);
  if (!order.empty() && incident_ == nullptr)
    select_incident(order.front());  // none can be read: the first says why
  if (!history().has(selection_.statistic)) selection_.statistic = history().first_available();
}

std::vector<std::string> Session::complaints() const {
  std::vector<std::string> all;
  for (const std::string& error : {manifest_error_, series_error_})
    if (!error.empty()) all.push_back(error);
  for (const IncidentEntry& entry : incidents_)
    if (!entry.error.empty()) all.push_back(entry.error);
  if (incident_ && !incident_->replay_error.empty()) all.push_back(incident_->replay_error);
  return all;
}

const History& Session::history() const {
  return series_.empty() && incident_ ? incident_->history : series_;
}

std::string Session::replay_command() const {
  if (selection_.incident < 0) return "";
  return "nanquest-replay " +
         shell_quoted(incidents_[static_cast<std::size_t>(selection_.incident)].files.snapshot);
}

Status Session::reload() {
  const Selection before = selection_;
  const std::string snapshot = incident_ ? incident_->reader.path() : "";
  incident_.reset();
  detail_.reset();
  slice_.reset();
  if (Status loaded = load(); !loaded) return loaded;
  int row = -1;
  for (std::size_t i = 0; i < incidents_.size(); ++i)
    if (incidents_[i].files.snapshot == snapshot) row = static_cast<int>(i);
  if (row < 0) {
    start_selection();
    return {};
  }
  select_incident(row);
  const Selection fresh = selection_;
  selection_ = before;
  selection_.incident = row;
  if (incident_ == nullptr) return {};
  if (selection_.op >= static_cast<std::int32_t>(incident_->trace.size())) selection_.op = fresh.op;
  if (!incident_->reader.has_tensor(selection_.tensor)) selection_.tensor = fresh.tensor;
  return {};
}

std::string Session::stamp() const {
  if (!is_run_) return file_stamp(verdict_path(path_));
  std::string out;
  for (const SeriesFile& file : listing_.series) out += file_stamp(file.path);
  out += file_stamp(manifest_path(path_));
  for (const IncidentFiles& files : listing_.incidents)
    out += file_stamp(files.snapshot) + file_stamp(verdict_path(files.snapshot));
  return out;
}

bool Session::poll() {
  if (is_run_) {
    Result<RunListing> listing = list_run(path_);
    if (!listing) return false;  // vanished or half made: keep what is shown
    listing_ = std::move(listing).value();
  }
  if (stamp() == stamp_) return false;
  return reload().ok();
}

}  // namespace nanquest::viewer
