// nanquest-replay RANK0.h5 RANK1.h5 …: several ranks of a step together.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/collect.h"
#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/run_dir.h"
#include "replay/cause/together.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"

namespace nanquest::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRows = 65536;

/// The first step for which ranks of a run left rows, -1 if there is none.
std::int64_t first_row(const std::string& run_dir) {
  std::int64_t first = -1;
  std::error_code error;
  fs::directory_iterator at(incidents_dir(run_dir), error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error))
    if (const auto file = parse_step_file(at->path().string());
        file && file->ending.ends_with(".row") && (first < 0 || file->step < first))
      first = file->step;
  return first;
}

/// A step without a file, from the rows that ranks left: "run: step 131: no rank's file; ranks 1, 2 left
/// rows; rank 0 is not there". Nothing if there is no row.
std::optional<Error> rows_alone(const std::string& run_dir, std::int64_t step) {
  const auto rows = rank_rows_beside(incident_path(run_dir, step, 0), kMostRows);
  if (rows.empty()) return std::nullopt;
  CollectedStep left;
  left.step = step;
  const auto world_size =
      static_cast<std::int32_t>(std::min<std::size_t>(kMostRows, rows.begin()->second.world_size));
  for (std::int32_t rank = 0; rank < world_size; ++rank)
    (rows.count(rank) > 0 ? left.rows : left.missing).push_back(rank);
  return Error{ErrorCode::bad_file, run_dir + ": " + step_in_words(left, world_size),
               "nanquest-viewer " + run_dir + " shows what the rows say"};
}

/// From a run directory the files of one step, the last attempt of each rank.
Result<std::vector<std::string>> files_of_step(const std::string& run_dir, std::int64_t step) {
  const auto listing = list_run(run_dir);
  if (!listing) return listing.error();
  if (step < 0) step = listing->incidents.empty() ? first_row(run_dir) : listing->incidents.front().step;
  if (step < 0)
    return Error{ErrorCode::bad_file, run_dir + ": holds no incident", "give a run that has one, or files"};
  std::map<std::int32_t, std::string> by_rank;
  for (const IncidentFiles& incident : listing->incidents)
    if (incident.step == step) by_rank[incident.rank] = incident.snapshot;
  if (by_rank.empty()) {
    if (auto rows = rows_alone(run_dir, step)) return *std::move(rows);
    return Error{ErrorCode::usage, run_dir + ": no file of step " + std::to_string(step),
                 "nanquest-viewer " + run_dir + " lists its incidents"};
  }
  std::vector<std::string> files;
  files.reserve(by_rank.size());
  for (const auto& [rank, file] : by_rank) files.push_back(file);
  return files;
}

/// "run/incidents/step-00000131.ranks.json", beside the first file.
std::string ranks_json_path(const RanksVerdict& v) {
  const auto folder = fs::path(v.files.front().file).parent_path();
  return (folder / (step_stem(v.step) + ".ranks.json")).string();
}

int judged(const RanksArguments& arguments, const Doing& tell) {
  std::vector<std::string> files = without_replays(arguments.files);
  if (files.size() == 1 && fs::is_directory(files.front())) {
    auto found = files_of_step(files.front(), arguments.step);
    if (!found) return fail(found.error());
    files = std::move(found).value();
  }
  Progressor progress(arguments.quiet);
  const auto say = saying(tell, progress);
  std::vector<OpenRank> ranks;
  for (const std::string& file : files) {
    say("reading " + file);
    Common one;
    one.snapshot = file;
    auto replayer = open_snapshot(one);
    if (!replayer) return fail(replayer.error());
    ranks.push_back({file, std::move(replayer).value()});
  }
  if (const Status sound = one_step(ranks); !sound) return fail(sound.error());
  const RanksVerdict verdict = judge_together(ranks, say);
  progress.clear();
  const std::string path = ranks_json_path(verdict);
  if (!arguments.no_files)
    if (const Status written = write_file_atomically(path, to_json(verdict)); !written)
      std::fprintf(stderr, "nanquest-replay: warning: %s\n", written.error().text().c_str());
  std::fputs((arguments.json ? to_json(verdict) : to_text(verdict)).c_str(), stdout);
  if (!arguments.json && verdict.finding == RanksFinding::rank) {
    std::printf("cause       by the file of rank %d alone: nanquest-replay %s\n", verdict.first->rank,
                verdict.first->file.c_str());
    std::fflush(stdout);
    ranks.clear();  // what they hold
    Common one;
    one.snapshot = verdict.first->file;
    one.quiet = arguments.quiet;
    DiagnoseArguments briefly;
    briefly.brief = briefly.no_files = true;
    if (diagnosed(one, briefly, "", tell) == kInterrupted) return kInterrupted;
  }
  const bool found =
      verdict.finding != RanksFinding::none || verdict.any_differs() || verdict.replicas_differ();
  return static_cast<int>(found ? ExitCode::finding : ExitCode::ok);
}

}  // namespace

std::vector<std::string> without_replays(std::vector<std::string> files) {
  std::erase_if(files, [given = files](const std::string& file) {
    return std::find(given.begin(), given.end(), snapshot_beside(file)) != given.end();
  });
  return files;
}

int ranks_command(const RanksArguments& arguments) {
  return sheltered([&](const Doing& tell) { return judged(arguments, tell); },
                   [&](const std::string& crash) {
                     std::fprintf(stderr,
                                  "nanquest-replay: a kernel crashed (%s); replay each rank's file alone\n",
                                  crash.c_str());
                     return static_cast<int>(ExitCode::internal);
                   });
}

}  // namespace nanquest::cli
