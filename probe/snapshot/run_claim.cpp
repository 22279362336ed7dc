#include "probe/snapshot/run_claim.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

std::string lock_path(const std::string& run_dir, std::int32_t rank) {
  return (fs::path(run_dir) / (".lock.r" + std::to_string(rank))).string();
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Process that holds the lock of that rank, 0 if none does. Not for a rank of this process: closing any
/// descriptor of a file releases the locks that the process holds on it.
pid_t holder(const std::string& run_dir, std::int32_t rank) {
  const Descriptor file(::open(lock_path(run_dir, rank).c_str(), O_RDWR | O_CLOEXEC));
  struct flock lock = whole_file();
  if (!file || ::fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return lock.l_pid;
}

std::vector<fs::directory_entry> entries_of(const std::string& directory) {
  std::vector<fs::directory_entry> found;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) found.push_back(*at);
  return found;
}

/// Whether a process has claimed a rank there; not for a directory in which this process has.
bool at_work(const std::string& run_dir) {
  for (const fs::directory_entry& entry : entries_of(run_dir)) {
    const std::string name = entry.path().filename().string();
    std::int32_t rank = 0;
    if (std::sscanf(name.c_str(), ".lock.r%d", &rank) == 1 && holder(run_dir, rank) != 0) return true;
  }
  return false;
}

/// Files of an earlier run, without the series of ranks that are running.
std::vector<std::string> leftovers(const std::string& run_dir, std::int32_t rank) {
  std::vector<std::string> out;
  for (const std::string& directory :
       {incidents_dir(run_dir), recordings_dir(run_dir), checkpoints_dir(run_dir)})
    if (!entries_of(directory).empty()) out.push_back(directory);
  std::error_code error;
  for (const char* name : {kMetricsJsonl, kMetricsCsv})
    if (const fs::path path = fs::path(run_dir) / name; fs::is_regular_file(path, error))
      out.push_back(path.string());
  for (const fs::directory_entry& entry : entries_of(run_dir))
    if (entry.is_directory(error) && is_restart(entry.path().string()) && !at_work(entry.path().string()))
      out.push_back(entry.path().string());
  const Result<RunListing> listing = list_run(run_dir);
  if (!listing) return out;
  if (!listing->manifest.empty()) out.push_back(listing->manifest);
  for (const SeriesFile& series : listing->series) {
    if (series.rank != rank && holder(run_dir, series.rank) != 0) continue;
    out.push_back(series.path);
    if (const std::string ranges = ranges_path(run_dir, series.rank); fs::is_regular_file(ranges, error))
      out.push_back(ranges);
  }
  return out;
}

/// run_dir/earlier/20260102T030405Z, with a number appended if that exists.
std::string place_for(const std::string& run_dir) {
  const Result<Manifest> manifest = read_manifest(run_dir);
  std::string name;
  for (const char c : manifest && !manifest->created.empty() ? manifest->created : utc_now())
    if ((c >= '0' && c <= '9') || c == 'T' || c == 'Z') name += c;
  const std::string base = (fs::path(run_dir) / "earlier" / name).string();
  std::string place = base;
  std::error_code error;
  for (int n = 2; fs::exists(place, error); ++n) place = base + "-" + std::to_string(n);
  return place;
}

Error refused(const std::string& what, const std::error_code& error) {
  return {ErrorCode::io, what + ": " + error.message(), "give a directory that can be written"};
}

Result<std::string> move_away(const std::string& run_dir, std::int32_t rank) {
  const std::vector<std::string> left = leftovers(run_dir, rank);
  if (left.empty()) return std::string();
  const std::string place = place_for(run_dir);
  std::error_code error;
  fs::create_directories(place, error);
  for (std::size_t i = 0; i < left.size() && !error; ++i)
    fs::rename(left[i], fs::path(place) / fs::path(left[i]).filename(), error);
  if (error) return refused(run_dir + ": the earlier run in it can't be moved to " + place, error);
  return place;
}

}  // namespace

Result<RunClaim> RunClaim::take(const std::string& run_dir, std::int32_t rank, bool resume) try {
  std::error_code error;
  fs::create_directories(run_dir, error);
  if (error) return refused(run_dir + ": the run directory can't be made", error);
  RunClaim claim;
  claim.run_dir_ = run_dir;
  claim.lock_ = std::make_shared<Descriptor>(
      ::open(lock_path(run_dir, rank).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!*claim.lock_)
    return refused(run_dir + ": nothing can be written there", {errno, std::generic_category()});
  struct flock lock = whole_file();
  // A run also starts on a file system without locks.
  if (::fcntl(claim.lock_->get(), F_SETLK, &lock) != 0 && (errno == EACCES || errno == EAGAIN))
    return Error{
        ErrorCode::usage,
        run_dir + ": process " + std::to_string(holder(run_dir, rank)) + " is writing a run there now",
        "give another run directory, or wait for it"};
  if (!resume && rank == 0) {
    Result<std::string> moved = move_away(run_dir, rank);
    if (!moved) return moved.error();
    claim.earlier_ = std::move(moved).value();
  }
  fs::create_directories(incidents_dir(run_dir), error);
  if (error) return refused(run_dir + ": the run directory can't be made", error);
  return claim;
} catch (const std::exception& e) {
  return Error{ErrorCode::io, run_dir + ": " + e.what(), "give a directory that can be written"};
}

std::string RunClaim::earlier_text() const {
  return earlier_.empty() ? "" : "the run that was in " + run_dir_ + " is now in " + earlier_;
}

}  // namespace nanquest
