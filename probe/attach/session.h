/// AttachSession: the probe inside a program that knows nothing of it.
///
/// The program's optimizer steps are found from what runs. Everything between two optimizer updates is one
/// step: its ops are recorded as they run (outside values by reference, copied only before they are
/// overwritten); at the optimizer's door the step's gradients are checked. A good step's trace is
/// dropped, a bad one becomes a snapshot. The program goes on as it would have.
///
/// One session in a process; its functions are called on the thread that trains. They never throw: a
/// failure inside switches the session off and is told once by `trouble()`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/attach/named_list.h"
#include "probe/base/result.h"
#include "probe/capture/recorder.h"
#include "probe/guard/gate.h"
#include "probe/guard/run_log.h"
#include "probe/guard/step_record.h"
#include "probe/nanquest.h"
#include "probe/observe/observer.h"

namespace nanquest::attach {

/// Settings of a session.
struct AttachOptions {
  ProbeOptions probe;    ///< run directory, level, rank, …
  int watch_first = 3;   ///< level trace: steps at the start whose values are scanned as at level watch
  int watch_every = 50;  ///< … and every so many steps; 0 = never again
  int watch_after = 10;  ///< … and so many steps after an incident
  std::set<std::int64_t> record_steps;  ///< steps that become files, good or bad, as the level records them
  bool skip_bad_updates = false;        ///< ask the caller to keep the optimizer from writing
};

/// What a call at the optimizer's door says.
struct Door {
  Gate gate = Gate::ok;
  bool skip = false;      ///< the update should not be made
  bool incident = false;  ///< something was found; `summary` says what
  std::string summary;    ///< a line for the log, "" if there is nothing to say
  std::string file;       ///< the incident's snapshot, "" if none was written
};

/// What the caller knows at the optimizer's door.
struct Update {
  double lr = 0;
  double loss_scale = 1;        ///< of gradients that are still scaled: the optimizer unscales them itself
  bool scale_overflow = false;  ///< a loss scaler found an overflow and keeps this update from being made
};

class AttachSession : public OpSink {
 public:
  /// Makes the run directory and begins to observe this thread.
  static Result<std::unique_ptr<AttachSession>> start(AttachOptions options);
  ~AttachSession() override;

  /// Gives a tensor its name in traces and snapshots. Parameters are also what the gate looks at.
  void name_parameter(const std::string& name, const at::Tensor& tensor);
  void name_buffer(const std::string& name, const at::Tensor& tensor);
  void name_state(const std::string& name, const at::Tensor& tensor);
  void name_batch(const std::string& name, const at::Tensor& tensor);

  /// A forward pass that will be differentiated begins; the first after an update begins a new step. Says
  /// what was found since the last call at the door (a loss scaler that gives up skips the optimizer, so
  /// nobody asks there).
  Door begin_forward();
  /// The optimizer is about to write. Several optimizers may do so in one step.
  Door before_update(const Update& update);
  /// The optimizer has written.
  Door after_update();
  /// Sample ids of the current step, and a step number that the program knows better.
  void set_samples(std::vector<std::string> ids) { sample_ids_ = std::move(ids); }

  /// Asks for a file of the step that runs (between two steps: of the coming one). False at level guard,
  /// which records nothing.
  bool record_step();

  int incidents() const { return incidents_; }
  /// Number of the step that runs or has just been made, and how many were made.
  std::int64_t step() const { return step_; }
  std::int64_t steps_made() const { return step_ + (updated_ ? 1 : 0); }
  /// Why the session switched itself off, once; "" if it works.
  std::string trouble();
  Status finish(const std::string& outcome);

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  void on_error(const char* what) override;

 private:
  explicit AttachSession(AttachOptions options, guard::RunLog log);
  struct Trace;
  void new_trace();
  bool watching() const;
  void safely(const char* doing, const std::function<void()>& work);
  void write_incident(Gate gate, const std::string& what, Door& door);
  /// Writes the step's file if somebody asked for it and no incident's file holds it; its trace is complete.
  void write_recording(Door& door);
  Status write_trace(Gate gate, const std::string& path, std::string& culprit);
  StepState state_of_step() const;
  void loss_scale_updated();

  AttachOptions options_;
  guard::RunLog log_;
  guard::StepRecord record_;
  guard::GradientGate gate_;
  NamedList parameters_, buffers_, states_, batch_;
  std::unique_ptr<Trace> trace_;
  std::optional<ObserverSession> observer_;
  std::vector<std::string> sample_ids_;
  std::int64_t step_ = 0;
  std::int64_t last_incident_ = -1'000'000;
  int incidents_ = 0, overflows_ = 0;
  bool updated_ = false, off_ = false, told_ = false;
  double loss_scale_ = 1;
  Door unsaid_;  ///< found where nobody was there to be told
  std::string trouble_;
};

}  // namespace nanquest::attach
