/// manifest.json of a run directory: what ran, its state, what happened. Always complete (temp + rename).
///
/// VERSION RULE: format_version is "major.minor"; a reader refuses a newer major and ignores unknown fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/atomic_file.h"

namespace nanquest {

/// One incident as the run saw it; replay's verdict is a file beside the snapshot.
struct ManifestIncident {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::string
      file;  ///< relative to the run directory: "incidents/step-00000131.r0.h5"; "" if none was written
  std::string gate;     ///< "ok", "scale_overflow", "non_finite", "spike"
  std::string summary;  ///< one line for people
  std::int64_t carried_on = 0;  ///< later steps that only propagated its damage
  bool muted = false;           ///< a person muted it; there is no file
  std::int64_t repeated = 0;    ///< later steps that were bad anew in the same way
};

/// A snapshot that was removed.
struct ManifestRemoval {
  std::string file;  ///< relative to the run directory
  std::uint64_t bytes = 0;
  std::string why;  ///< one line for people
};

/// One forecast: a value that was expected to leave its format's range soon.
struct ManifestForecast {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::string text;   ///< one line for people
  std::string place;  ///< "aten::bmm in blocks.3.attention (forward, float16)"
  double bits = 0;    ///< headroom left at that time
  double steps = 0, earliest = 0, latest = 0;  ///< until it is used up; latest below 0: perhaps never
};

/// Weights that should be equal on all ranks and are not.
struct ManifestReplicas {
  std::int64_t step = 0;
  std::vector<std::int32_t> ranks;  ///< ranks with weights unlike the others; all, if that is not known
  std::string tensor;               ///< the first that was seen to differ
  std::string text;                 ///< one line for people
};

/// What a run has to tell of that is no incident.
struct ManifestFinding {
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::string kind;    ///< "bad_checkpoint", "bad_load", "nothing_learned", "divergence"
  std::string label;   ///< what it would be called in a verdict: "BAD_STATE"
  std::string tensor;  ///< the first that it is about; "" if there is none
  std::string file;    ///< the program's file; "" if there is none
  std::string text;    ///< one line for people
};

struct Manifest {
  std::string created;   ///< UTC, "2025-01-02T03:04:05Z"
  std::string nanquest;  ///< version of the program
  std::string command;   ///< as typed
  std::map<std::string, std::string> config;
  std::int32_t rank = 0, world_size = 1;
  std::string status = "running";  ///< "running", "finished", "stopped", "failed"
  std::string outcome;             ///< one line for people: how it ended
  std::vector<ManifestIncident> incidents;
  std::vector<ManifestForecast> forecasts;
  std::vector<ManifestReplicas> replicas;
  std::vector<ManifestFinding> findings;
  std::vector<ManifestRemoval> removed;  ///< in order of removal
  std::string format_version;  ///< filled by read_manifest
};

/// Writes run_dir/manifest.json and replaces the previous one. Text that is not UTF-8 is repaired, not
/// refused.
Status write_manifest(const std::string& run_dir, const Manifest& manifest, Durable durable = Durable::now);

/// Reads run_dir/manifest.json. `bad_file` if it is missing, not ours, or of a newer major version.
Result<Manifest> read_manifest(const std::string& run_dir);

/// The current time in UTC, "2025-01-02T03:04:05Z": the spelling of times in every file of a run.
std::string utc_now();

}  // namespace nanquest
