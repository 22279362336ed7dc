/// RecordSession records one step while its owner runs it.
///
///     Recorder recorder({.keep_steps = 0});
///     RecordSession recording(recorder, state, {.watch = true});
///     … forward, backward …
///     recording.computed(loss, parameters);           // while loss and gradients are as backward left them
///     if (bad) write_snapshot(recording.end(state), path);
///
/// Begin, end and destroy it on the thread that runs the step. One at a time in a process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/observe/observer.h"
#include "probe/record/record.h"
#include "probe/record/tables.h"

namespace nanquest {

class RecordSession {
 public:
  /// Observes from here on. What `state` names is copied before it is overwritten. `listens` false: the owner
  /// has a session of its own that passes ops to `recorder` and that goes on after this one stops (for a
  /// tape).
  RecordSession(Recorder& recorder, const StepState& state, const RecordOptions& options,
                bool listens = true);
  ~RecordSession();
  RecordSession(const RecordSession&) = delete;
  RecordSession& operator=(const RecordSession&) = delete;

  /// Stops observing.
  void stop();
  /// Stores what the loss (may be undefined) and the gradients of the named parameters are now.
  void computed(const at::Tensor& loss, const NamedTensors& parameters);
  /// The step is finite: keeps its batch for comparison with a later bad step (Recorder::keep_healthy).
  void healthy();
  /// Whether, in a watched step, an op's overflow has changed a finite result so far.
  bool hides_damage() { return recorder_.hides_damage(); }
  /// The step as tables; `state` fills the header. They refer to memory of the recorder and of the program
  /// and are valid until either goes on. May be called again.
  Recording end(const StepState& state);
  /// The same, independent of the program's memory. The data keep `recorder`, which must be this recording's
  /// recorder.
  Recording end_and_own(const StepState& state, const std::shared_ptr<const Recorder>& recorder);
  /// The steps before this one and this one (tape_so_far), with the names in `state`.
  std::shared_ptr<TapeRecording> tape(const StepState& state, std::unique_ptr<record::Step>& held,
                                      std::string& complaint);

 private:
  StepTables tables(const StepState& state);

  Recorder& recorder_;
  StepNames names_;  ///< as it was when the step began
  /// Holds the gradients of that time, so that their addresses, which name them, are not reused.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> old_gradients_;
  at::Tensor rng_;
  std::optional<ObserverSession> observer_;
  std::string not_observed_;
  std::optional<SeenTensor> loss_;
  std::vector<SeenTensor> gradients_;
};

}  // namespace nanquest
