/// An incident: its line in the list, and what is open of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/reader.h"
#include "probe/snapshot/run_dir.h"
#include "replay/verdict/verdict.h"
#include "viewer/model/history.h"
#include "viewer/model/replayed.h"
#include "viewer/model/tensors.h"
#include "viewer/model/trace.h"

namespace nanquest::viewer {

/// How much a verdict knows, the most first.
enum class Known : std::uint8_t { cause, unknown, not_replayed, harmless };

/// What is left of an incident's snapshot.
enum class Snapshot : std::uint8_t { here, lost, never_written };

/// One line of the incident list.
struct IncidentEntry {
  IncidentFiles files;
  Snapshot snapshot = Snapshot::here;
  std::string gate;     ///< "non_finite", …, of the manifest or of the opened file; "" if unknown
  std::string summary;  ///< of the manifest
  std::string cause;    ///< of the verdict, "" if not replayed yet
  double confidence = 0;
  bool silent = false;  ///< its verdict says that no gate could detect it
  Known known = Known::not_replayed;
  std::string error;          ///< why its snapshot can't be read, "" if it could, or was not tried yet
  std::string verdict_error;  ///< why its verdict can't be read although it is there

  /// "FP16_OVERFLOW", "not replayed yet", or why it can't be read.
  std::string standing() const;
  /// One sentence of what is known without verdict and snapshot: "Step 131 was not finite: …".
  std::string known_text() const;
  /// Copies what the list shows of a verdict.
  void note(const Verdict& verdict);
  /// Copies which gate failed and what was found, unless that is known.
  void note(const SnapshotDoc& recorded);
};

/// The gate that failed there; `non_finite` if unknown.
Gate gate_of(const IncidentEntry& entry);

/// The incidents of a run by step, rank and attempt: those with a snapshot, those with only a verdict left,
/// and those that only the manifest knows. Verdicts are read.
std::vector<IncidentEntry> list_incidents(const RunListing& listing, const std::optional<Manifest>& manifest);

/// Which of two incidents is shown first: a failed gate before a spike, before a loss scale overflow, before
/// what no gate detected; then the one of which more is known.
bool opens_before(const IncidentEntry& a, const IncidentEntry& b);

/// The opened snapshot with everything derived from it. Never changed once made; the file behind `reader` has
/// one user at a time, the thread that reads.
struct OpenIncident {
  /// `replay_file`: what nanquest-replay left beside it ("" if nothing): it has the statistics of a step that
  /// was recorded without. `verdict`: what it blames is the culprit.
  OpenIncident(SnapshotReader opened, const std::string& replay_file, const std::optional<Verdict>& verdict);
  OpenIncident(const OpenIncident&) = delete;
  OpenIncident& operator=(const OpenIncident&) = delete;

  /// Path of the batch's first tensor, where samples are seen; "" if none is stored.
  const std::string& sample_tensor() const { return sample_tensor_; }
  /// True if a tensor of that path is stored; looks at no file.
  bool holds(const std::string& path) const;

  /// The file that holds the tensor: the snapshot, or its replay.
  const SnapshotReader& reader_of(const StoredTensor& tensor) const;

  SnapshotReader reader;
  std::string replay_error;  ///< why the replay file can't be read, "" if it could or was not needed
  std::optional<SnapshotReader> replay;  ///< what nanquest-replay left beside the snapshot
  SnapshotDoc doc;                       ///< with the culprit of the verdict, where there is one
  std::optional<Replayed> replayed;      ///< the step in fp32 and fp64
  TraceView trace;
  History history;  ///< the steps before it, as stored in the snapshot
  std::vector<StoredTensor> tensors;
  std::string tensors_error;

 private:
  std::string sample_tensor_;
};

}  // namespace nanquest::viewer
