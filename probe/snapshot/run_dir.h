/// A run directory: the names of its files, and a listing of them.
///
///     run/manifest.json
///     run/series.r0.h5
///     run/ranges.r0.h5
///     run/incidents/step-00000131.r0.h5            snapshot
///     run/incidents/step-00000131.r0.json .md .replay.h5   what replay found
///     run/recordings/step-00000005.r0.h5            snapshot of a step that was asked for, good or bad
///     run/checkpoints/…
///     run/restart-1/                                a run directory of its own: the ranks, started again
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// run/manifest.json
std::string manifest_path(const std::string& run_dir);
/// run/series.r0.h5
std::string series_path(const std::string& run_dir, std::int32_t rank);
/// run/ranges.r0.h5: how far the values of every place reached, at the watched steps
std::string ranges_path(const std::string& run_dir, std::int32_t rank);
/// run/incidents/step-00000131.r7.row and ….first hold what ranks report of a step (rank_row.h).

/// "step-00000131": the beginning of the name of every file of a step.
std::string step_stem(std::int64_t step);
/// "step-00000131.r7": the beginning of the name of every file of a rank's step.
std::string rank_stem(std::int64_t step, std::int32_t rank);

/// run/incidents
std::string incidents_dir(const std::string& run_dir);
/// run/incidents/step-00000131.r0.h5
std::string incident_path(const std::string& run_dir, std::int64_t step, std::int32_t rank);
/// run/incidents/step-00000131.r0.2.h5, …: the first free name of this kind, for a step that failed more than
/// once.
std::string free_incident_path(const std::string& run_dir, std::int64_t step, std::int32_t rank);
/// run/recordings
std::string recordings_dir(const std::string& run_dir);
/// run/recordings/step-00000131.r0.h5 or, if that exists, ….r0.2.h5: a step that was saved on request.
std::string free_recording_path(const std::string& run_dir, std::int64_t step, std::int32_t rank);
/// Whether a directory in run/ has the name of a restart by a launcher: run/restart-1.
bool is_restart(const std::string& path);
/// run/checkpoints
std::string checkpoints_dir(const std::string& run_dir);

/// Beside a snapshot: its name with ".h5" replaced by ".json", ".md" and ".replay.h5".
std::string verdict_path(const std::string& snapshot);
std::string report_path(const std::string& snapshot);
std::string replay_path(const std::string& snapshot);
/// The inverse: the snapshot to which a file beside it (".json" or ".replay.h5") belongs; "" for other names.
std::string snapshot_beside(const std::string& path);

/// One incident of a run.
struct IncidentFiles {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  int attempt = 1;  ///< the 2 of "step-00000131.r0.2.h5"
  std::string snapshot;
  std::string verdict;  ///< "" if the file is not there
  std::string report;   ///< "" if the file is not there
  std::string replay;   ///< "" if the file is not there
};

/// One series file of a run.
struct SeriesFile {
  std::int32_t rank = 0;
  std::string path;
};

/// The contents of a run directory; names only, nothing is opened.
struct RunListing {
  std::string run_dir;
  std::string manifest;                  ///< "" if the file is not there
  std::vector<SeriesFile> series;        ///< by rank
  std::vector<IncidentFiles> incidents;  ///< by step, rank, attempt
  std::vector<IncidentFiles> lost;  ///< incidents with a verdict but without a snapshot; in the same order
};

/// What the name of a step's file says.
struct StepFile {
  std::int64_t step = 0;
  std::int32_t rank = -1;  ///< -1: of all ranks ("step-00000131.first")
  std::string ending;      ///< what follows: ".h5", ".2.h5", ".replay.h5", ".2-2.row"
};

/// Nothing if the file (a path or a name) does not have the name of a step's file.
std::optional<StepFile> parse_step_file(const std::string& path);

/// Step, rank and attempt from a snapshot's file name; nothing for other names.
std::optional<IncidentFiles> parse_incident_name(const std::string& path);

/// Lists `run_dir`. `bad_file` if it is not a directory or holds no manifest, series, incidents or verdicts.
Result<RunListing> list_run(const std::string& run_dir);

}  // namespace nanquest
