/// collect: copies a run's files from the nodes it ran on into one run directory.
///
///     Result<Collected> all = collect_run({"node0/run", "node1/run"}, "run");
///     for (const CollectedStep& step : all->steps) say(step_in_words(step, all->world_size));
///
/// Files are copied, never moved. The new directory appears complete or not at all: it is built under another
/// name beside it, every snapshot is read from there and compared with its checksums, and then it is renamed.
/// An interruption leaves a folder `<out>.partial-<process>`, which can be deleted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// The files of one step by rank; each rank is in one of the three lists.
struct CollectedStep {
  std::int64_t step = 0;
  bool recording = false;             ///< in recordings/: saved on request, not an incident
  std::vector<std::int32_t> files;    ///< ranks with a snapshot
  std::vector<std::int32_t> rows;     ///< ranks that left a row instead (rank_row.h)
  std::vector<std::int32_t> missing;  ///< ranks without any file
};

struct Collected {
  std::string run_dir;
  std::int32_t world_size = 1;
  std::vector<CollectedStep> steps;  ///< incidents before recordings, each by step
  std::uint64_t files = 0, bytes = 0;
  std::vector<std::string> notes;  ///< one line for each file that was not taken or existed more than once
};

/// Copies the contents of `from` (run directories, folders of snapshots, single files) into the new run
/// directory `out`, which must not exist or be empty. Copied are manifests (joined into one), series, ranges,
/// metrics, incidents with all files beside them, and recordings; not checkpoints and earlier runs. `usage`:
/// nothing given, `out` is not empty, or the sources are not one run (another number of processes, other
/// settings, files with one name that differ); `bad_file`: a source without any file of a run, or a damaged
/// file; `io`. On failure `out` is not created.
Result<Collected> collect_run(const std::vector<std::string>& from, const std::string& out);

/// "0, 1, 3"; for more than eight ranks the first eight and "…".
std::string ranks_in_words(const std::vector<std::int32_t>& ranks);
/// "rank 1", "ranks 0, 1, 3".
std::string named_ranks(const std::vector<std::int32_t>& ranks);

/// "step 131: ranks 0, 1, 3 of 4; rank 2 is not there".
std::string step_in_words(const CollectedStep& step, std::int32_t world_size);

}  // namespace nanquest
