// nanquest-replay RANK0.h5 RANK1.h5 …: several ranks of a step together.
#include <cstdio>
#include <filesystem>
#include <map>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"
#include "replay/cause/together.h"
#include "replay/cli/commands.h"
#include "replay/lab/shelter.h"

namespace nanquest::cli {
namespace {

/// Of a run directory the files of one step, the last attempt of each rank.
Result<std::vector<std::string>> files_of_step(const std::string& run_dir, std::int64_t step) {
  const auto listing = list_run(run_dir);
  if (!listing) return listing.error();
  if (listing->incidents.empty())
    return Error{ErrorCode::bad_file, run_dir + ": holds no incident", "give a run that has one, or files"};
  if (step < 0) step = listing->incidents.front().step;
  std::map<std::int32_t, std::string> by_rank;
  for (const IncidentFiles& incident : listing->incidents)
    if (incident.step == step) by_rank[incident.rank] = incident.snapshot;
  if (by_rank.empty())
    return Error{ErrorCode::usage, run_dir + ": no file of step " + std::to_string(step),
                 "nanquest-viewer " + run_dir + " lists its incidents"};
  std::vector<std::string> files;
  files.reserve(by_rank.size());
  for (const auto& [rank, file] : by_rank) files.push_back(file);
  return files;
}

/// "run/incidents/step-00000131.ranks.json", beside the first file.
std::string ranks_json_path(const RanksVerdict& v) {
  const auto folder = std::filesystem::path(v.files.front().file).parent_path();
  return (folder / (step_stem(v.step) + ".ranks.json")).string();
}

int judged(const RanksArguments& arguments, const Doing& tell) {
  std::vector<std::string> files = arguments.files;
  if (files.size() == 1 && std::filesystem::is_directory(files.front())) {
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
  if (!arguments.json && verdict.finding == RanksFinding::rank)
    std::printf("cause       nanquest-replay %s\n", verdict.first->file.c_str());
  const bool found = verdict.finding != RanksFinding::none || verdict.any_differs() || verdict.replicas_differ();
  return static_cast<int>(found ? ExitCode::finding : ExitCode::ok);
}

}  // namespace

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
