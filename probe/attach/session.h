/// AttachSession: the probe inside a program that knows nothing of it.
///
/// The program's optimizer steps are found from what runs. Everything between two optimizer updates is one
/// step: its ops are recorded as they run (outside values by reference, copied only before they are
/// overwritten); before an update the step's gradients are checked. A good step's trace is
/// dropped, a bad one becomes a snapshot. The program goes on as it would have.
///
/// Level trace also keeps the last few steps with what their updates overwrote: damage that an update did and
/// that a later step shows is written as the step that did it.
///
/// One session in a process; its functions are called on the thread that trains. They never throw: a
/// failure inside switches the session off and is told once by `trouble()`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "probe/attach/formats.h"
#include "probe/attach/losses.h"
#include "probe/attach/pass_results.h"
#include "probe/attach/program_tensors.h"
#include "probe/attach/rounds.h"
#include "probe/attach/step_undo.h"
#include "probe/base/result.h"
#include "probe/nanquest.h"
#include "probe/observe/observer.h"
#include "probe/step/facts.h"
#include "probe/step/forecast.h"
#include "probe/step/incident_writer.h"
#include "probe/step/judge.h"
#include "probe/step/range_record.h"
#include "probe/step/run_log.h"
#include "probe/step/state_check.h"
#include "probe/step/step_machine.h"

namespace nanquest::attach {

/// Settings of a session.
struct AttachOptions {
  ProbeOptions probe;    ///< run directory, level, rank, …
  int watch_first = 3;   ///< level trace: steps at the start whose values are scanned as at level watch
  int watch_every = 50;  ///< … and every so many steps; 0 = never again
  int watch_after = 10;  ///< … and so many steps after an incident
  int keep_steps = 2;    ///< level trace: steps that stay with what their updates overwrote; 0 = none
  int keep_percent = 1;  ///< … while that takes no more of the time of training
  int keep_memory_percent = 25;  ///< … and of the free memory
  int tape = 0;  ///< so many steps at least stay in an unbroken record (probe/record/tape.h); 0 = none
  std::string tape_folder;              ///< where its large values are files instead of memory; "": nowhere
  std::set<std::int64_t> record_steps;  ///< steps that become files, good or bad, as the level records them
  bool forecast = true;                 ///< say what is about to leave its format's range
  std::uint64_t max_disk = 0;  ///< bytes that files of this rank's steps may take together; 0 = no bound
  std::set<std::pair<std::string, std::string>>
      muted;                      ///< op and module of culprits that nobody wants to hear of
  int few_files_from = 8;         ///< so many ranks: only those that matter write whole files; 0 = all always
  bool skip_bad_updates = false;  ///< ask the caller to keep the optimizer from writing
};

/// What a boundary of a step (a pass begins, an update begins, it is over) says.
struct StepAnswer {
  Gate gate = Gate::ok;
  std::int64_t step = 0;        ///< which it is about, where there is something to skip
  bool skip = false;            ///< the update should not be made (of a step that was given up: it was not)
  bool gradients_bad = false;   ///< they hold NaN or Inf, which under data parallelism every rank sees
  bool scale_overflow = false;  ///< the loss scale is too high, whatever else is bad
  bool incident = false;        ///< something was found; `told` says what
  bool stops = true;      ///< an incident that may end the program, if it wants to be ended by incidents
  bool forecast = false;  ///< something is about to leave its format's range; `told` says what
  Facts told;             ///< what there is to say (text_of makes a line of it)
  std::string file;       ///< the incident's snapshot, "" if none was written
};

/// What the caller knows when an update begins.
struct Update {
  double lr = 0;
  double loss_scale = 1;        ///< of gradients that are still scaled: the optimizer unscales them itself
  bool scale_overflow = false;  ///< a loss scaler found an overflow and keeps this update from being made
};

class AttachSession : public OpSink {
 public:
  /// Makes the run directory and begins to observe this thread. `front`, for a program that tells nothing
  /// itself: what it makes of the session is told of all ops, at every level and without a rest, and hands on
  /// to the session; it must live as long.
  static Result<std::unique_ptr<AttachSession>> start(
      AttachOptions options, const std::function<OpSink&(AttachSession&)>& front = {});
  ~AttachSession() override;

  /// Gives a parameter its name in traces and snapshots. Returns its number for `Weights`, below 0 if there
  /// is none.
  std::int64_t name_parameter(const std::string& name, const at::Tensor& tensor);
  /// The same for a tensor of another kind (ProgramTensors::put, and "batch").
  void name(const std::string& kind, const std::string& name, const at::Tensor& tensor);

  /// A forward pass that will be differentiated begins; the first after an update begins a new step. Says
  /// what is wrong with the pass before if the program went on without an update.
  StepAnswer begin_forward();
  /// Whether the next forward pass, whatever it is given, begins a step: none runs, or nothing but passes
  /// aside.
  bool between_steps() const { return machine_.over() || (rounds_ && machine_.between_steps()); }
  /// Between two steps a model begins to compute that no update will write: a teacher, a target network, an
  /// encoder that is frozen. If something of it is still there when the next forward pass begins, it is that
  /// step's beginning. Without effect while a step runs.
  void begin_aside();
  /// A loss scaler made `scaled` from `loss`.
  void note_scaled(const at::Tensor& scaled, const at::Tensor& loss);
  /// Backward starts at `roots`. `accumulates`: into .grad; otherwise the gradients are returned.
  void begin_backward(const std::vector<at::Tensor>& roots, bool accumulates);
  /// It is over, or failed.
  void end_backward();
  /// A gradient was taken that is differentiated again. The step goes on, and what it was taken of was not
  /// given up, whatever its value.
  void inner_gradient();
  /// What one of the forward passes gave since the last backward; its graph is held weakly. As long as the
  /// program holds it too, the passes are one step's.
  void made_by_pass(const at::Tensor& result);
  /// The gradients of `weights` were clipped by their norm, which was `norm`.
  StepAnswer clipped(const at::Tensor& norm, const Weights& weights);
  /// The program cleared gradients.
  void gradients_cleared();
  /// The program ends, perhaps in the middle of a step. `raised`: the error that ends it, "" if none does;
  /// one that a NaN brought about (a distribution or a loss that refuses it) is an incident.
  StepAnswer program_ends(const std::string& raised);
  /// The optimizer is about to write `weights`. Several optimizers may do so in one step (see StepCounter).
  /// With `gradients_follow` the optimizer computes them itself, by a closure: `judge` is called when they
  /// are there.
  StepAnswer before_update(const Update& update, const Weights& weights, bool gradients_follow);
  /// Looks at loss and gradients of the weights that are about to be written.
  StepAnswer judge(const Update& update);
  /// The optimizer has written.
  StepAnswer after_update();

  /// The program captures a graph of its device's work (torch.cuda.graph), from `begins` on until it is told
  /// false: nothing that runs now computes anything, and whoever waits for the device spoils the capture. All
  /// calls do nothing then.
  void capture(bool begins);
  /// Such a graph was replayed: the step that runs computed what nobody saw.
  void graph_ran();

  /// A step may have to be left out: what its passes write, these buffers and the random generators, is as
  /// now when `put_back` is called before `after_update` or the next `remember`.
  void remember(const std::vector<at::Tensor>& buffers);
  /// A pass of the program's models begins, or is over (see StepUndo).
  void pass(bool begins);
  /// True unless the random generators had to stay as they are.
  bool put_back();
  /// What was remembered is not wanted: the step goes on for good, or was none.
  void forget() { undo_.forget(); }
  /// Whether a step is under way that `put_back` would undo.
  bool remembers() const { return undo_.remembers(); }
  /// A weight that some update made NaN or Inf, so that leaving out others does not help; "" if there is
  /// none.
  std::string spoiled_weight();
  /// Makes the fp16 and bf16 ones of these fp32, all or none; why not, or "". `try_only`: changes nothing.
  std::string widen(const std::vector<at::Tensor>& tensors, bool try_only);
  /// The last `widen` is for good, or never was.
  void keep_wide(bool keep);

  /// Sample ids of the coming forward pass. Those of later micro-batches follow those of the first.
  void set_samples(std::vector<std::string> ids);
  /// The step that runs (between two steps: the coming one) has this number in the program's own count.
  void set_step(std::int64_t number) { machine_.set_step(number); }

  /// Weights that DistributedDataParallel keeps alike on these ranks ("0 1 2"; "" if it no longer does), but
  /// for those of these names, one a line: files of steps say so.
  void note_replicas(std::string ranks, std::string others) {
    replicas_ = {std::move(ranks), std::move(others)};
  }
  /// They were compared, and are not: into the manifest.
  void replicas_differ(ManifestReplicas told);

  /// From here on steps are counted and nothing else: not judged, recorded or written, and what was on record
  /// is forgotten. `resume` ends that with the next step that begins.
  void pause();
  /// Said of the step in its file (SnapshotDoc::environment), from here on.
  void note(const std::string& key, const std::string& value) { notes_[key] = value; }
  /// What runs now is of this micro-batch, as a pipeline's schedule says, until the next call; below 0: they
  /// are counted by forward and backward passes again.
  void set_told_micro_batch(int index);
  void resume() { machine_.resume(); }

  /// Asks for a file of the step that runs (between two steps: of the coming one). False at level guard,
  /// which records nothing.
  bool record_step();

  int incidents() const { return writer_.count(); }
  /// Incidents that were not told, as AttachOptions::muted wants it.
  int muted() const { return writer_.muted(); }
  /// Steps that only carried on the damage of an incident.
  std::int64_t carried_on() const { return writer_.carried_on(); }
  /// What the gate saw last as a step's loss (see Losses::total); NaN where it saw none.
  double loss() const { return loss_; }
  /// Number of the step that runs or has just been made, and how many were made.
  std::int64_t step() const { return machine_.step(); }
  std::int64_t steps_made() const { return machine_.made(); }
  /// How many steps were recorded that nobody watched, and bytes that the recorder holds.
  std::int64_t standing_steps() const { return rounds_ ? rounds_->unwatched() : 0; }
  std::int64_t standing_bytes() const;
  /// What can't be kept: why the session switched itself off, why the series ends; each once. "" if all is
  /// well.
  std::string trouble();
  Status finish(const std::string& outcome);

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  void on_error(const char* what) override;

 private:
  explicit AttachSession(AttachOptions options, RunLog log);
  void new_trace();
  /// The step's trace is dropped, unless it stays as one of the last.
  void close_trace();
  std::size_t ops_so_far() const { return rounds_->recorder().op_count(); }
  void start_step();
  /// A pass begins, and with it this.
  void begin(StepMachine::Begins what, bool aside);
  /// A micro-batch begins that nobody told.
  void count_micro_batch(std::int32_t index) {
    if (told_micro_batch_ < 0) set_micro_batch(index);
  }
  void begin_rounds();
  /// After an incident's step: what it left non-finite, by which later steps are told to carry it on.
  void remember_damage();
  /// Ops are told again, if an update that nobody records had stopped that.
  void listen() {
    if (observer_ && !machine_.off()) observer_->wake();
  }
  void hand_written(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  bool watching() const;
  /// Does `work` unless the session is off; what fails in it switches the session off.
  void safely(const char* doing, const std::function<void()>& work);
  /// The same even if the session is off: for what gives the program back what was taken from it.
  void always(const char* doing, const std::function<void()>& work);
  class Pages;
  /// A bad step, of which `what` is to be said: news, or what carries the last incident on. `pages`: those of
  /// the step that runs, if they were made already.
  void write_incident(Gate gate, const Facts& what, StepAnswer& answer, bool update_made = false,
                      Pages* pages = nullptr);
  /// The incident's file: of the step that runs, or of the one that did the damage.
  std::string write_file(Gate gate, Facts& told, bool update_made, Pages* pages);
  /// Whether the step that runs can be written.
  bool on_record();
  /// At the gate of a watched step of level trace: whether its update is recorded as well.
  bool watches_update();
  /// What lives on and is bad at a boundary of the step (its gate; after its update), and was not so before
  /// it.
  void report_damage(StepAnswer& answer, bool update_made);
  Facts damage_of_update();
  Facts damage_of_passes();
  /// Writes of hidden damage that this watched step has shown so far.
  void report_hidden_damage(StepAnswer& answer);
  /// At the gate of a good step: how far its values reach, and what is about to leave its range.
  void foresee(StepAnswer& answer);
  /// Whether an overflow of this place would do no harm, as far as the step that runs tells.
  bool would_be_harmless(const record::RangePlace& place);
  /// At the gate, the update is the next: is it recorded, or does the trace of an unwatched step end here?
  void pass_gate(StepAnswer& answer, bool rate_is_finite);
  /// Writes the step's file if somebody asked for it and no incident's file holds it; its trace is complete.
  void write_recording(StepAnswer& answer);
  /// Something happened that no op told of: `why` and `every_step` as Tape::cut wants them.
  void cut_tape(const char* why, bool every_step = true) {
    if (rounds_) rounds_->recorder().cut_tape(why, every_step);
  }
  StepAnswer look_back(Fact::Kind how);
  /// The step in which the program was ended by `raised`, if something that it made is bad.
  StepAnswer look_at_what_raised(const std::string& raised);
  void give_up_step();
  bool pass_went_bad() const;
  /// Another forward pass is about to begin, or the program ends (`how` says which): tells what is wrong with
  /// the pass before if the step goes on, or ends, without an update. Returns whether that is so.
  bool judge_pass(Fact::Kind how, bool ends, StepAnswer& answer);
  /// Whether the bad pass may be differentiated by the backward of a later one.
  bool may_share_backward() const;
  /// Backward starts at `roots`, and a pass before it is in doubt.
  void settle_doubt(const std::vector<at::Tensor>& roots);
  /// The pass in doubt was thrown away: a step of its own, without an update.
  StepAnswer thrown_away(Fact::Kind how);
  /// Of the step that runs, as far as it was watched: what its culprit is.
  StateCheck::Blame blamed_so_far(Pages* pages);
  /// Whether a loss that tells of the step is not finite.
  bool loss_is_bad() const;
  RoundFacts facts_of_round();
  RoundResults computed() const { return {losses_.telling(), gate_.parameters()}; }
  /// The step whose update spoiled a weight that this step found spoiled, or a state that it did; null if
  /// there is none.
  const Rounds::Kept* round_that_spoiled(std::string& name, bool update_made);
  StepState state_of_step(const RoundFacts& facts) const;

  AttachOptions options_;
  RunLog log_;
  RunHistory history_;
  GradientGate gate_;
  ProgramTensors tensors_;
  NamedList batch_;
  std::unique_ptr<Rounds> rounds_;  ///< of levels trace and watch
  /// The step that runs, while it is on record.
  struct Trace {
    bool watched = false;
    bool keeps = false;                                  ///< the update is recorded with what it overwrites
    std::size_t update_begins = 0;                       ///< first op of the optimizer
    std::size_t update_ends = 0;                         ///< first op after it
    bool weights_finite = false, states_finite = false;  ///< see RoundFacts
  };
  Trace trace_;
  PassResults results_;  ///< of the passes that are on record
  std::optional<ObserverSession> observer_;
  bool followed_ = false;  ///< by somebody in front, who finds the steps in the ops
  std::vector<std::string> sample_ids_;
  StepMachine machine_;
  StepJudge judge_;
  StateCheck check_;
  IncidentWriter writer_;
  Forecast forecast_;
  RangeRecord ranges_;
  bool told_ = false;               ///< why the session is off
  std::int64_t graph_ran_in_ = -1;  ///< the last step in which a captured graph ran
  double loss_scale_ = 1;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  Losses losses_;
  at::Tensor norm_;        ///< of the gradients, as clipping found it; may lie on a device
  bool norm_bad_ = false;  ///< it was NaN or Inf in this step
  StepAnswer pending_;     ///< found where nobody was there to be told
  std::pair<std::string, std::string> replicas_;  ///< see note_replicas
  StepUndo undo_;
  Widened widened_;
  Facts trouble_;
  std::map<std::string, std::string> notes_;
  int told_micro_batch_ = -1;
};

}  // namespace nanquest::attach
