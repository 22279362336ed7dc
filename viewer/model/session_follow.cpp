// A run that changes while it is shown: reading it again, noticing that it moved.
#include <filesystem>
#include <system_error>
#include <utility>

#include "viewer/model/session.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

std::string file_stamp(const std::string& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) return path + "?";
  const auto time = fs::last_write_time(path, ec);
  return path + ":" + std::to_string(size) + ":" + std::to_string(time.time_since_epoch().count()) + ";";
}

/// "" while a run or a snapshot is where it was opened; then `listing` is what the run holds now.
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

Status Session::reload() {
  lost_ = gone(path_, is_run_, listing_);
  if (!lost_.empty()) return Error{ErrorCode::bad_file, lost_, ""};
  const Selection before = selection_;
  const IncidentFiles shown = entry() == nullptr ? IncidentFiles{} : entry()->files;
  incident_.reset();
  verdict_.reset();
  detail_.reset();
  slice_.reset();
  selection_.incident = -1;
  if (Status loaded = load(); !loaded) return loaded;
  int row = -1;
  for (std::size_t i = 0; i < incidents_.size(); ++i)
    if (const IncidentFiles& files = incidents_[i].files;
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

std::string Session::stamp() const {
  if (!is_run_) return file_stamp(path_) + file_stamp(verdict_path(path_));
  std::string out;
  for (const SeriesFile& file : listing_.series) out += file_stamp(file.path);
  out += file_stamp(manifest_path(path_));
  for (const IncidentFiles& files : listing_.lost) out += file_stamp(files.verdict);
  for (const IncidentFiles& files : listing_.incidents)
    out += file_stamp(files.snapshot) + file_stamp(verdict_path(files.snapshot));
  return out;
}

bool Session::poll() {
  if (std::string now = gone(path_, is_run_, listing_); !now.empty() || !lost_.empty()) {
    const bool news = now.empty() || lost_.empty();
    lost_ = std::move(now);
    return news && (!lost_.empty() || reload().ok());
  }
  if (stamp() == stamp_) return false;
  return reload().ok();
}

}  // namespace nanquest::viewer
