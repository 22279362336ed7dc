#include "viewer/model/kept.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "probe/snapshot/run_dir.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

fs::path whole(const std::string& path) {
  std::error_code ec;
  fs::path all = fs::weakly_canonical(fs::absolute(path, ec), ec);
  return all.has_filename() ? all : all.parent_path();  // of "runs/story/"
}

/// True if `path` lies in `folder`, or is it, however they are written.
bool inside(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return end == folder.end();
}

}  // namespace

std::string whole_path(const std::string& path) {
  return whole(path).string();
}

std::string run_around(const std::string& snapshot) {
  const fs::path file = whole(snapshot), run = file.parent_path().parent_path();
  const bool is_place =
      file.parent_path() == incidents_dir(run.string()) || file.parent_path() == recordings_dir(run.string());
  return is_place && list_run(run.string()) ? run.string() : "";
}

std::string folder_above(const Session& session) {
  if (!session.is_run() && session.folder() == nullptr) return "";
  std::error_code ec;
  const fs::path here = fs::absolute(session.path(), ec).lexically_normal();
  const fs::path above = (here.has_filename() ? here : here.parent_path()).parent_path();
  return ec || above == here ? "" : above.string();
}

Status folder_is_there(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code ec;
  if (folder.empty() || fs::is_directory(folder, ec)) return {};
  return Error{ErrorCode::bad_file, path + ": there is no folder " + folder.string(),
               "make it, or name another"};
}

Status may_write(const Session& session, const std::string& path) {
  if (const RunFolder* folder = session.folder(); folder != nullptr) {
    for (const RunLine& run : folder->runs)
      if (inside(whole(path), whole(run.path)))
        return Error{ErrorCode::usage,
                     path + " lies in " + whole(run.path).string() + ", and nothing is written into a run",
                     "name another folder"};
    return {};
  }
  const std::string run = session.is_run() ? session.path() : run_around(session.path());
  const std::string kept = run.empty() ? session.path() : run;
  if (!inside(whole(path), whole(kept))) return {};
  return Error{ErrorCode::usage,
               run.empty()
                   ? path + " is what is shown, and nothing is written into that"
                   : path + " lies in " + whole(kept).string() + ", and nothing is written into a run",
               "name another folder"};
}

}  // namespace nanquest::viewer
