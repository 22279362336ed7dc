// A run that changes while it is shown: reads it again, and notices if it was moved.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <tuple>
#include <utility>

#include "viewer/model/file_stamp.h"
#include "viewer/model/run_state.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

std::string folder_stamp(const std::string& path) {
  std::error_code ec;
  const auto time = fs::last_write_time(path, ec);
  return ec ? "" : std::to_string(time.time_since_epoch().count()) + ";";
}

/// Of all that a replay or a rehearsal leaves beside a snapshot.
std::string stamps_beside(const std::string& snapshot) {
  return file_stamp(verdict_path(snapshot)) + file_stamp(replay_path(snapshot)) +
         file_stamp(rehearsal_path(snapshot));
}

/// "" while a run or a snapshot is where it was opened; then `listing` is the run's present content.
std::string gone(const std::string& path, bool is_run, RunListing& listing) {
  std::error_code ec;
  bool there = !is_run && (fs::is_regular_file(path, ec) || fs::is_regular_file(verdict_path(path), ec));
  if (Result<RunListing> now = is_run ? list_run(path) : RunListing(); is_run && now) {
    listing = std::move(now).value();
    there = true;
  }
  return there ? "" : path + " is gone (moved, renamed or removed); what is shown was read before";
}

}  // namespace

std::string file_stamp(const std::string& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) return path + "?";
  const auto time = fs::last_write_time(path, ec);
  return path + ":" + std::to_string(size) + ":" + std::to_string(time.time_since_epoch().count()) + ";";
}

Status Session::reload_own() {
  RunListing listing = *listing_;
  lost_ = gone(path_, is_run_, listing);
  if (!lost_.empty()) return Error{ErrorCode::bad_file, lost_, ""};
  listing_ = std::make_shared<RunListing>(std::move(listing));
  const Selection before = selection_;
  const IncidentFiles shown = entry() == nullptr ? IncidentFiles{} : entry()->files;
  incident_.reset();
  verdict_.reset();
  forget_tensor();
  selection_.incident = -1;
  if (Status loaded = load(); !loaded) return loaded;
  int row = -1;
  for (std::size_t i = 0; i < incidents().size(); ++i)
    if (const IncidentFiles& files = incidents()[i].files;
        before.incident >= 0 && files.snapshot == shown.snapshot && files.step == shown.step)
      row = static_cast<int>(i);
  if (row < 0) {
    start_selection();
    return {};
  }
  select_incident(row);
  Selection again = before;
  again.incident = row;
  restore(again);
  return {};
}

Session::Stamps Session::stamps() const {
  Stamps now;
  if (!is_run_) {
    now.incidents = file_stamp(path_) + stamps_beside(path_);
    return now;
  }
  for (const SeriesFile& file : listing_->series)
    now.series += file_stamp(file.path) + file_stamp(ranges_path(path_, file.rank));
  now.manifest = file_stamp(manifest_path(path_));
  now.folder = folder_stamp(incidents_dir(path_));
  for (const IncidentFiles& files : listing_->lost) now.incidents += file_stamp(files.verdict);
  for (const IncidentFiles& files : listing_->incidents)
    now.incidents += file_stamp(files.snapshot) + stamps_beside(files.snapshot);
  return now;
}

void Session::note_written() {
  written_ = last_written(*listing_);
}

/// False if it can't be read, or if it lists other incidents than before.
bool Session::read_manifest_again() {
  Result<Manifest> now = read_manifest(path_);
  const auto same = [](const ManifestIncident& a, const ManifestIncident& b) {
    return std::tie(a.step, a.rank, a.file, a.gate, a.summary) ==
           std::tie(b.step, b.rank, b.file, b.gate, b.summary);
  };
  if (!now || !manifest_ ||
      !std::equal(now->incidents.begin(), now->incidents.end(), manifest_->incidents.begin(),
                  manifest_->incidents.end(), same))
    return false;
  manifest_ = std::move(now).value();
  note_reading(false);
  return true;
}

bool Session::poll_folder() {
  Result<RunFolder> now = read_run_folder(path_);
  if (!now || *now == *folder_) return false;
  nothing_because_ = now->headline();
  folder_ = std::make_shared<RunFolder>(std::move(now).value());
  note_reading();
  return true;
}

bool Session::poll_own() {
  if (nothing_) return folder_ != nullptr && poll_folder();
  auto listing = std::make_shared<RunListing>(*listing_);
  std::string where = gone(path_, is_run_, *listing);
  listing_ = std::move(listing);
  if (!where.empty() || !lost_.empty()) {
    const bool news = where.empty() || lost_.empty();
    lost_ = std::move(where);
    return news && (!lost_.empty() || reload_own().ok());
  }
  Stamps now = stamps();
  // A rank that leaves a row adds no incident, but the folder changes all the same.
  if (!manifest_ || manifest_->world_size < 2) now.folder = stamps_->folder;
  if (now == *stamps_) return false;
  if (now.incidents != stamps_->incidents || now.folder != stamps_->folder) return reload_own().ok();
  if (now.manifest != stamps_->manifest && !read_manifest_again()) return reload_own().ok();
  if (now.series != stamps_->series) load_series(series_.rank());
  keep_statistic();
  stamps_ = std::make_shared<Stamps>(std::move(now));
  note_written();
  return true;
}

bool Session::poll() {
  const bool own = poll_own(), beside = poll_others();
  if (own || beside) compare_again();
  return own || beside;
}

Status Session::reload() {
  Status own = reload_own();
  (void)poll_others();
  compare_again();
  return own;
}

}  // namespace nanquest::viewer
