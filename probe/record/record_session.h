/// RecordSession: one step on record while its owner runs it.
///
///     Recorder recorder({.keep_steps = 0});
///     RecordSession recording(recorder, state, {.watch = true});
///     … forward, backward …
///     recording.computed(loss, parameters);           // while loss and gradients are as backward left them
///     if (bad) write_snapshot(recording.end(state), path);
///
/// Begun, ended and destroyed on the thread that runs the step. One at a time in a process.
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
  /// Observes from here on. What `state` names is copied when something is about to overwrite it. `listens`
  /// false: a session of the owner's tells `recorder` of ops, and goes on when this stops (for a tape).
  RecordSession(Recorder& recorder, const StepState& state, const RecordOptions& options,
                bool listens = true);
  ~RecordSession();
  RecordSession(const RecordSession&) = delete;
  RecordSession& operator=(const RecordSession&) = delete;

  /// Observes no longer.
  void stop();
  /// Keeps what loss (may be undefined) and gradients of the named parameters are now.
  void computed(const at::Tensor& loss, const NamedTensors& parameters);
  /// The step came out well: its batch is kept for one that does not (Recorder::keep_healthy).
  void healthy();
  /// Of a watched step: an op's overflow changed a finite result, so far.
  bool hides_damage() { return recorder_.hides_damage(); }
  /// The step as tables; `state` fills the header. They refer to memory of the recorder and of the program
  /// and are right until either goes on. May be called again.
  Recording end(const StepState& state);
  /// The same, independent of the program's memory; its data keep `recorder`, which is this recording's.
  Recording end_and_own(const StepState& state, const std::shared_ptr<const Recorder>& recorder);
  /// The steps before it and itself (tape_so_far), with the names that `state` has.
  std::shared_ptr<TapeRecording> tape(const StepState& state, std::unique_ptr<record::Step>& held,
                                      std::string& complaint);

 private:
  StepTables tables(const StepState& state);

  Recorder& recorder_;
  StepNames names_;  ///< as the step began
  /// Gradients of that time are named by their addresses, which these keep from becoming others'.
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> old_gradients_;
  at::Tensor rng_;
  std::optional<ObserverSession> observer_;
  std::string not_observed_;
  std::optional<SeenTensor> loss_;
  std::vector<SeenTensor> gradients_;
};

}  // namespace nanquest
