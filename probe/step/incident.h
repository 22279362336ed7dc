/// Incident: the bad step, run again under the recorder and written as one snapshot.
#pragma once

#include <functional>
#include <string>

#include "probe/record/record.h"
#include "probe/step/election.h"

namespace nanquest {

/// What came of it. Nothing here is ever thrown.
struct IncidentOutcome {
  std::string path;  ///< of the snapshot, "" if it could not be written
  std::string text;  ///< one line: the culprit, and what went wrong on the way, if anything
};

/// Finds words for the culprit of a recorded step and writes it to `path`. `before`: what is known of it
/// already.
/// With an `election` the file may be left to other ranks: then `path` is "", and the line says whose tells
/// the story.
IncidentOutcome write_incident(Recording& recording, Gate gate, const std::string& path,
                               std::string before = {}, Election* election = nullptr);

/// Runs `compute` recorded, starting from `state`, finds the culprit and writes `path`. `failed_again`
/// is asked after the run, with the loss: true if the failure came back. If it didn't, the recording is
/// kept and the text says so.
IncidentOutcome capture_incident(const StepState& state, Gate gate,
                                 const std::function<at::Tensor()>& compute,
                                 const std::function<bool(const at::Tensor& loss)>& failed_again,
                                 const std::string& path, Election* election = nullptr);

}  // namespace nanquest
