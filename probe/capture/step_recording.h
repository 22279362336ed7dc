/// StepRecording: one step on record while its owner runs it.
///
///     StepRecording recording(state, {.lazy = true});
///     … forward, backward …
///     recording.computed(loss);                       // while loss and gradients are as backward left them
///     if (bad) write_snapshot(recording.end(state), path);
///
/// Begun, ended and destroyed on the thread that runs the step. One at a time in a process.
#pragma once

#include <memory>
#include <optional>

#include "probe/capture/record.h"
#include "probe/capture/recorder.h"
#include "probe/observe/observer.h"

namespace nanquest {

class StepRecording {
 public:
  /// Observes from here on. What `state` names is copied now, or, with `options.lazy`, when something is
  /// about to overwrite it. Throws what copying throws.
  StepRecording(const StepState& state, const RecordOptions& options);
  /// Observes no longer.
  void stop() { observer_.reset(); }
  /// Rows of the loss (may be undefined) and of the gradients of the named parameters as they are now.
  void computed(const at::Tensor& loss, const NamedTensors& parameters);
  /// Ops whose overflow a finite result shows, so far (hidden_overflows). Needs `options.scan`.
  const SnapshotDoc& doc_with_hidden_overflows();
  /// The recording is complete; `state` fills its header. Once.
  Recording end(const StepState& state);
  /// What was recorded so far; its notes say what failed.
  Recording& recording() { return *recording_; }

 private:
  RecordOptions options_;
  std::unique_ptr<Recording> recording_;
  TraceRecorder recorder_;
  std::optional<ObserverSession> observer_;
};

}  // namespace nanquest
