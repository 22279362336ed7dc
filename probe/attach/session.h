/// AttachSession: the probe inside a program that knows nothing of it.
///
/// The program's optimizer steps are found from what runs. Everything between two optimizer updates is one
/// step. Its ops are recorded as they run (outside values by reference, copied only before they are
/// overwritten), and its gradients are checked before the update. A good step's trace is dropped; a bad one
/// becomes a snapshot. The program goes on as it would without the probe.
///
/// Level trace also keeps the last few steps with what their updates overwrote. If a later step shows damage
/// that an update did, the step of that update is written.
///
/// One session in a process; call its functions on the thread that trains. They never throw: a failure inside
/// switches the session off and is reported once by `trouble()`.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "probe/attach/awaited.h"
#include "probe/attach/clip_norm.h"
#include "probe/attach/derivatives.h"
#include "probe/attach/excursions.h"
#include "probe/attach/formats.h"
#include "probe/attach/living_memory.h"
#include "probe/attach/losses.h"
#include "probe/attach/options.h"
#include "probe/attach/pass_results.h"
#include "probe/attach/program_tensors.h"
#include "probe/attach/rounds.h"
#include "probe/attach/step_answer.h"
#include "probe/attach/step_graph.h"
#include "probe/attach/step_undo.h"
#include "probe/attach/target_copies.h"
#include "probe/attach/watched_steps.h"
#include "probe/base/result.h"
#include "probe/nanquest.h"
#include "probe/observe/observer.h"
#include "probe/step/facts.h"
#include "probe/step/first_bad.h"
#include "probe/step/forecast.h"
#include "probe/step/incident_writer.h"
#include "probe/step/judge.h"
#include "probe/step/range_record.h"
#include "probe/step/run_log.h"
#include "probe/step/state_check.h"
#include "probe/step/step_machine.h"
#include "probe/step/update_risk.h"

namespace nanquest::attach {

class AttachSession : public OpSink {
 public:
  /// Makes the run directory and begins to observe this thread. `front` is for a program that reports nothing
  /// itself: the observer that `front` makes of the session gets all ops, at every level and without a pause,
  /// and passes them to the session; it must live as long.
  static Result<std::unique_ptr<AttachSession>> start(
      AttachOptions options, const std::function<OpSink&(AttachSession&)>& front = {});
  ~AttachSession() override;

  /// Gives a parameter its name in traces and snapshots. Returns its number for `Weights`, below 0 if it has
  /// none.
  std::int64_t name_parameter(const std::string& name, const at::Tensor& tensor);
  /// The same for a tensor of another kind (ProgramTensors::put, and "batch").
  void name(const std::string& kind, const std::string& name, const at::Tensor& tensor);

  /// A forward pass that will be differentiated begins; the first after an update begins a new step. Reports
  /// what is wrong with the previous pass if the program went on without an update.
  StepAnswer begin_forward();
  /// Whether the next forward pass begins a step, whatever its inputs: no step is active, or only auxiliary
  /// passes ran.
  bool between_steps() const { return machine_.over() || (rounds_ && machine_.between_steps()); }
  /// Between two steps, a model begins to compute that no update will write: a teacher, a target network, a
  /// frozen encoder. If any of its results is alive when the next forward pass begins, the step begins with
  /// it. Ignored while a step is running.
  void begin_aside();
  /// The program computes with these weights, and no optimizer is known to hold them: TargetCopies.
  void computes_with(const std::vector<at::Tensor>& weights) { targets_.computes_with(weights); }
  /// The program loaded something into these weights, at level guard, which sees no ops.
  void loaded(const std::vector<at::Tensor>& weights) { targets_.overwritten(weights); }
  /// A loss scaler computed `scaled` from `loss`.
  void note_scaled(const at::Tensor& scaled, const at::Tensor& loss);
  /// Backward starts at `roots`. `accumulates`: into .grad; otherwise the gradients are returned.
  void begin_backward(const std::vector<at::Tensor>& roots, bool accumulates);
  /// The backward pass is over, or failed.
  void end_backward();
  /// A gradient was computed that is differentiated again. The step goes on, and the tensor it was computed
  /// from was not given up, whatever its value.
  void inner_gradient();
  /// A program without an optimizer has computed the gradients of these weights (Derivatives).
  void derived(std::int64_t lane, const std::vector<at::Tensor>& weights,
               const std::vector<at::Tensor>& gradients, bool accumulated);
  /// It is about to compute those of `weights`, or has begun to. If they came in place of the weights before,
  /// the step before has had its update. Returns what has been found since it was asked last.
  StepAnswer derives(const std::vector<at::Tensor>& weights);
  /// A result of one of the forward passes since the last backward; its graph is held weakly. As long as the
  /// program holds it too, the passes belong to one step.
  void made_by_pass(const at::Tensor& result);
  /// The gradients of `weights` were clipped by their norm, which was `norm`.
  StepAnswer clipped(const at::Tensor& norm, const Weights& weights);
  /// The program cleared its gradients.
  void gradients_cleared();
  /// The program ends, possibly in the middle of a step. `raised`: the error that ends it, or "". An error
  /// caused by a NaN (a distribution or a loss that refuses it) is an incident.
  StepAnswer program_ends(const std::string& raised);
  /// The optimizer is about to write `weights`. Several optimizers may do so in one step (see StepCounter).
  /// With `gradients_follow` the optimizer computes the gradients itself, by a closure: `judge` is called
  /// when they are there.
  StepAnswer before_update(const Update& update, const Weights& weights, bool gradients_follow);
  /// A setting of the optimizer has changed since its last update.
  void setting_changed() { risk_.changed(); }
  /// The next update is the first of its optimizer.
  void new_optimizer() { new_optimizer_ = true; }
  /// Judges the loss and the gradients of the weights that are about to be written.
  StepAnswer judge(const Update& update);
  /// For the update that has begun, once; nobody has waited for it. Empty if the gate has answered.
  GateWord gate_word() { return std::exchange(word_, {}); }
  /// The device may put back what the update that is over wrote (KeptUpdate).
  void may_be_put_back(const std::vector<at::Tensor>& written) {
    if (rounds_) rounds_->recorder().may_be_put_back(written);
  }
  /// What came late, of steps before: to be told whenever one of these functions has answered.
  /// Where processes decide together: only at an update and at the end, so that all tell it at the same
  /// place.
  std::vector<StepAnswer> late_answers() {
    return std::exchange(late_due_, false) || !together_ ? std::exchange(late_, {})
                                                         : std::vector<StepAnswer>();
  }
  /// From now on the gradients are the same in all processes that train together, and each decides by them
  /// alone whether its update is left out: a loss is each process's own.
  void decides_together() { together_ = true; }
  /// The optimizer has written.
  StepAnswer after_update();

  /// The program captures a graph of its device's work (torch.cuda.graph), from `begins` true until false.
  /// Nothing that runs then computes anything, and waiting for the device would break the capture. All calls
  /// do nothing during that time.
  void capture(bool begins);
  /// Such a graph was replayed: what the running step computed was not observed.
  void graph_ran();

  /// A step may have to be skipped: `put_back`, called before `after_update` or the next `remember`, restores
  /// what its passes write, these buffers and the random generators, to their present state.
  void remember(const std::vector<at::Tensor>& buffers);
  /// A pass of the program's models begins or ends (see StepUndo).
  void pass(bool begins);
  /// True unless the random generators had to stay as they are.
  bool put_back();
  /// What was remembered is not needed: the step stays, or was none.
  void forget() { undo_.forget(); }
  /// Whether there is a step that `put_back` would undo.
  bool remembers() const { return undo_.remembers(); }
  /// A weight that some update made NaN or Inf, so that skipping later updates does not help; "" if there is
  /// none.
  std::string spoiled_weight();
  /// Makes fp16 and bf16 tensors among these fp32, all or none. Returns why it can't, or "". `try_only`:
  /// changes nothing.
  std::string widen(const std::vector<at::Tensor>& tensors, bool try_only);
  /// The last `widen` is kept, or there was none.
  void keep_wide(bool keep);

  /// Sample ids of the coming forward pass. Those of later micro-batches follow those of the first.
  void set_samples(std::vector<std::string> ids);
  /// The running step (between two steps: the next one) has this number in the program's own count.
  void set_step(std::int64_t number) { machine_.set_step(number); }

  /// DistributedDataParallel keeps weights alike on these ranks ("0 1 2"; "" if it no longer does), except
  /// those with these names, one per line. Written into files of steps.
  void note_replicas(std::string ranks, std::string others) {
    replicas_ = {std::move(ranks), std::move(others)};
  }
  /// They were compared and differ: written into the manifest.
  void replicas_differ(ManifestReplicas told);

  /// All that lives on from step to step, as a JSON array of objects: kind and name, elements, the address of
  /// its memory, whether it was bad before the first update (since_start), since which step it is bad (-1: it
  /// is not known to be), and the op that wrote it then, or last in the running step.
  std::string state_names();
  /// Something to tell of that is no incident: written into the manifest.
  void found(ManifestFinding finding);

  /// The op of the running step that wrote this memory last; "" if that is not on record.
  std::string last_writer_of(const at::Tensor& memory);
  /// The running step as a graph, for `look`, which is not called where it is not on record (learning.h).
  void with_graph(const std::function<void(const StepGraph& step, Rounds& rounds)>& look);
  /// Whether the values of the running step are on record: the step is watched.
  bool watches() { return on_record() && trace_.watched; }
  const Losses& losses() const { return losses_; }

  /// From here on steps are only counted: not judged, recorded or written, and what was recorded is dropped.
  /// `resume` ends that at the next step that begins.
  void pause();
  /// Stored with the step in its file (SnapshotDoc::environment), from here on.
  void note(const std::string& key, const std::string& value) { notes_[key] = value; }
  /// What runs from now on belongs to this micro-batch, as a pipeline's schedule says, until the next call;
  /// below 0: micro-batches are counted by forward and backward passes again.
  void set_told_micro_batch(int index);
  void resume() { machine_.resume(); }

  /// Ranks that train together watch the same steps. One of them asks how often (one step in how many; 0:
  /// there is nothing to agree on) and tells the others, and all say from which step on that counts.
  int watch_wanted();
  void watch_from(std::int64_t first, std::int64_t every) { watched_steps_.from(step(), first, every); }

  /// Asks for a file of the running step (between two steps: of the next one). False at level guard, which
  /// records nothing.
  bool record_step();

  /// How to find out what of the program holds some memory; without it only what has a name is looked at.
  void find_owners_with(FindOwner find) { living_.find_owners_with(std::move(find)); }

  int incidents() const { return writer_.count(); }
  /// Those of them that are finite: spikes, and a loss that left its band for good.
  int spikes() const { return excursions_.count(); }
  /// Incidents that were only counted, as they were like the one before.
  int repeated() const { return writer_.repeated(); }
  /// Muted incidents, not reported (AttachOptions::muted).
  int muted() const { return writer_.muted(); }
  /// Steps that only showed damage of an incident.
  std::int64_t carried_on() const { return writer_.carried_on(); }
  /// What there is to say of a program with incidents when it ends.
  Facts outlook();
  /// The step loss that the gate saw last (see Losses::total); NaN if there was none.
  double loss() const { return loss_; }
  /// Number of the step that is running or was just made, and how many were made.
  std::int64_t step() const { return machine_.step(); }
  std::int64_t steps_made() const { return machine_.made(); }
  /// How many steps were recorded but not watched, and how many bytes the recorder holds.
  std::int64_t standing_steps() const { return rounds_ ? rounds_->unwatched() : 0; }
  std::int64_t standing_bytes() const;
  /// Errors, each reported once: why the session switched itself off, why the series ends. "" if there are
  /// none.
  std::string trouble();
  Status finish(const std::string& outcome);

  std::unique_ptr<OpFrame> on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) override;
  void on_end(const OpTraits& op, OpFrame& frame, c10::ArrayRef<const c10::IValue> outputs) override;
  std::unique_ptr<OpFrame> on_saved_copy(const OpTraits& copy, OpFrame& outer,
                                         c10::ArrayRef<const c10::IValue> inputs) override;
  void on_error(const char* what) override;

 private:
  explicit AttachSession(AttachOptions options, RunLog log);
  /// The running step begins, or begins again: it is measured from here on, and on record if steps are.
  void new_trace();
  /// Drops the step's trace, unless it stays as one of the last.
  void close_trace();
  std::size_t ops_so_far() const { return rounds_->recorder().op_count(); }
  void start_step();
  /// A pass begins, and with it what `begins` says.
  void begin(StepMachine::Begins what, bool aside);
  /// A micro-batch begins that the program did not announce.
  void count_micro_batch(std::int32_t index) {
    if (told_micro_batch_ < 0) set_micro_batch(index);
  }
  void begin_rounds();
  /// After an incident's step: stores what it left non-finite, so that later steps with that damage are
  /// recognised.
  void remember_damage() { remember_damage(step()); }
  void remember_damage(std::int64_t step);
  /// After this step: what is bad now, and since when.
  void note_damage(std::int64_t number);
  /// Observes ops again, if an update that is not recorded had stopped that.
  void listen() {
    if (observer_ && !machine_.off()) observer_->wake();
  }
  void hand_written(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
  /// Whether the program goes on with this tensor in place of a weight, which was its update.
  bool replaces_weight(const at::Tensor& tensor);
  bool computed_from_gradients(const at::Tensor& tensor);
  /// It gets the name of the weight in whose place it came, if that is the only one of its sizes.
  void take_over_name(const at::Tensor& tensor);
  /// The program updates its weights itself, from this op of the running step on.
  void updated_by_hand(std::size_t first_op);
  /// The update of the running step has been made: what it cost goes into the series.
  void note_costs();
  /// Runs `work` unless the session is off; a failure in it switches the session off.
  void safely(const char* doing, const std::function<void()>& work);
  /// The same even if the session is off: for what returns to the program what was taken from it.
  void always(const char* doing, const std::function<void()>& work);
  class Pages;
  /// Starts to measure the gradients of the coming update.
  Awaited look_at_gradients(const Update& update);
  /// Whether the update may be made before the gate has answered.
  bool may_come_later(const Awaited& look);
  /// Gives the device's word to the caller (gate_word), for an optimizer that leaves a bad update out there.
  bool withholds(Awaited& look);
  /// Handles the gate's answer. `late`: the step's update has been made.
  void answered(Awaited& look, StepAnswer& answer, bool late);
  enum class Hear : std::uint8_t {
    come,     ///< answers that devices have by now
    earlier,  ///< also waits for those of steps before the running one
    all,      ///< waits for all
  };
  /// A step's gate found nothing bad.
  void was_well() {
    check_.was_well();
    ++good_steps_;
  }
  /// Handles late answers, oldest first.
  void hear(Hear which);
  /// A bad step with the facts `what`: news, or damage of the last incident. `pages`: those of the running
  /// step, if they were made already. `late`: the step is this one, whose update has been made.
  void write_incident(Gate gate, const Facts& what, StepAnswer& answer, bool update_made = false,
                      Pages* pages = nullptr, const Awaited* late = nullptr);
  /// A finite step that the history's band has judged: a spike is an incident with a file of its own.
  void report_spike(const Awaited& look, const GateResult& seen, StepAnswer& answer, bool late);
  std::string write_spike(const SpikeNote& note, const Awaited& look, Facts& told, bool late);
  /// The incident's file: of the bad step, or of the one that did the damage.
  std::string write_file(Gate gate, Facts& told, bool update_made, Pages* pages, const Awaited* late);
  /// Whether the running step can be written.
  bool on_record();
  /// At the gate of a watched step of level trace: whether its update is recorded as well.
  bool watches_update();
  /// At the gate of a good step: whether its update gets something that earlier ones did not get, and can be
  /// kept.
  bool update_is_at_risk();
  void note_replaced_moments();
  /// State that is bad at a boundary of the step (its gate; after its update) and was not bad before.
  void report_damage(StepAnswer& answer, bool update_made);
  Facts damage_of_update();
  /// What of the state is bad after the update, and the op that wrote the first of it.
  Fact bad_after_update(Fact::Kind kind, std::string_view word, const NamedList& list);
  Facts damage_of_passes();
  /// The step has its update, and another one is about to begin: what ran in between is the step's.
  void look_between(StepAnswer& answer);
  Facts damage_between();
  /// If a bad step shows nothing but what the last incident left behind, it is counted and `answer` says so.
  bool only_carries_on(StepAnswer& answer, std::int64_t number, bool update_made,
                       const std::function<StateCheck::Blame()>& blamed);
  /// The same for a step whose loss scale overflowed, which is no incident by itself.
  void overflow_carries_on(StepAnswer& answer, const Awaited& of, bool late);
  /// Writes the hidden damage that this watched step has shown so far.
  void report_hidden_damage(StepAnswer& answer);
  /// At the gate of a good step: how far its values reach, and which places are about to leave their range.
  void foresee(StepAnswer& answer);
  /// At the gate, before the update: is the update recorded, or does the trace of a step that is not watched
  /// end here? `later`: the gate has not answered, and the trace must stay until it has.
  void pass_gate(StepAnswer& answer, const Update& update, bool later);
  /// Writes the step's file if it was asked for and no incident's file holds it; its trace is complete.
  void write_recording(StepAnswer& answer);
  /// Something happened that no op shows; `why` and `every_step` as in Tape::cut.
  void cut_tape(const char* why, bool every_step = true) {
    if (rounds_) rounds_->recorder().cut_tape(why, every_step);
  }
  StepAnswer look_back(Fact::Kind how);
  /// The step in which the error `raised` ended the program, if something that the step made is bad.
  StepAnswer look_at_what_raised(const std::string& raised);
  void give_up_step();
  bool pass_went_bad() const;
  /// Another forward pass is about to begin, or the program ends (`how`): reports what is wrong with the
  /// previous pass if the step goes on, or ends, without an update. Returns whether that is so.
  bool judge_pass(Fact::Kind how, bool ends, StepAnswer& answer);
  /// Whether the backward pass of a later pass may differentiate the bad one too.
  bool may_share_backward() const;
  /// Backward starts at `roots`, and an earlier pass is in doubt.
  void settle_doubt(const std::vector<at::Tensor>& roots);
  /// The pass in doubt was thrown away: a step of its own, without an update.
  StepAnswer thrown_away(Fact::Kind how);
  /// The culprit of the running step, or of `late`, as far as it was watched.
  StateCheck::Blame blamed_so_far(Pages* pages, const Awaited* late);
  RoundFacts facts_of_round();
  RoundResults computed() const { return {losses_.telling(), gate_.parameters()}; }
  /// The step whose update spoiled a weight that this step found bad, or a state that this step made bad;
  /// null if there is none. `late`: this step is the one that it stands for.
  const Rounds::Kept* round_that_spoiled(std::string& name, bool update_made, const Awaited* late);
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
    bool keeps = false;             ///< the update is recorded, with what it overwrites
    std::size_t update_begins = 0;  ///< first op of the optimizer
    std::size_t update_ends = 0;    ///< first op after it; of one by hand its first op
    bool looked_between = false;    ///< at what ran since then
    std::optional<std::vector<std::string>> samples = {};  ///< of the step, once it has its update
    bool weights_finite = false, states_finite = false;    ///< see RoundFacts
    RoundOutcome outcome = {};                             ///< of a step whose gate answers later
  };
  Trace trace_;
  PassResults results_;  ///< of the passes that are on record
  std::optional<ObserverSession> observer_;
  bool followed_ = false;  ///< the observer in front, which finds the steps in the ops
  std::vector<std::string> sample_ids_;
  StepMachine machine_;
  Derivatives derivatives_;
  StepJudge judge_;
  StateCheck check_;
  LivingMemory living_;
  FirstBad first_bad_;
  IncidentWriter writer_;
  Forecast forecast_;
  RangeRecord ranges_;
  UpdateRisk risk_;
  WatchedSteps watched_steps_;
  Excursions excursions_;
  TargetCopies targets_{tensors_};
  std::size_t states_freed_ = 0;    ///< moments that were replaced, at the last gate
  bool told_ = false;               ///< why the session is off
  std::int64_t graph_ran_in_ = -1;  ///< the last step in which a captured graph ran
  double loss_scale_ = 1;
  double loss_ = std::numeric_limits<double>::quiet_NaN();
  Losses losses_;
  ClipNorm norm_;
  std::deque<Awaited> awaited_;                   ///< oldest first
  std::vector<StepAnswer> late_;                  ///< not returned yet
  GateWord word_;                                 ///< see gate_word
  std::int64_t words_ = 0;                        ///< so many have been made
  bool late_due_ = false;                         ///< see late_answers
  bool together_ = false;                         ///< see decides_together
  bool waits_told_ = false;                       ///< said that each step waits for its gate
  StepAnswer pending_;                            ///< found when no caller could be told
  std::pair<std::string, std::string> replicas_;  ///< see note_replicas
  StepUndo undo_;
  Widened widened_;
  Facts trouble_;
  std::map<std::string, std::string> notes_;
  int told_micro_batch_ = -1;
  bool new_optimizer_ = false;  ///< the next update is the first of its optimizer
  bool left_out_ = false;       ///< the update of the step that runs is not made
  std::int64_t good_steps_ = 0;
  double first_scale_ = 0;  ///< the first loss scale
};

}  // namespace nanquest::attach
