#include "viewer/model/run_files.h"

#include <system_error>

#include "probe/snapshot/manifest.h"
#include "replay/verdict/rehearsal.h"
#include "viewer/model/file_stamp.h"

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

}  // namespace

std::string file_stamp(const std::string& path) {
  std::error_code ec;
  const auto size = fs::file_size(path, ec);
  if (ec) return path + "?";
  const auto time = fs::last_write_time(path, ec);
  return path + ":" + std::to_string(size) + ":" + std::to_string(time.time_since_epoch().count()) + ";";
}

Status RunFiles::list() {
  if (!is_run_) return {};
  Result<RunListing> now = list_run(path_);
  if (!now) return now.error();
  listing_ = std::make_shared<const RunListing>(std::move(now).value());
  return {};
}

std::string RunFiles::look() {
  std::error_code ec;
  const bool there =
      is_run_ ? list().ok() : fs::is_regular_file(path_, ec) || fs::is_regular_file(verdict_path(path_), ec);
  return there ? "" : path_ + " is gone (moved, renamed or removed); what is shown was read before";
}

RunFiles::Stamps RunFiles::stamps() const {
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

}  // namespace nanquest::viewer
