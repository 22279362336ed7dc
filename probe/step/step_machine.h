/// StepMachine: where a program is in its step, and what each of its actions means for that. No tensors: the
/// driver asks what has to be asked of them.
///
///     StepMachine machine;
///     switch (machine.pass_begins(held, left)) { case Begins::step: … }    // a forward pass begins
///     machine.backward_begins(/*accumulates=*/true); machine.backward_ends();
///     machine.update_begins(weights);
///     machine.gate_answered(machine.step(), gate);                          // now, or a step later
///     machine.update_ends();
///
/// It has four states, each with a table of transitions in step_machine.cpp: the stage of the step, the
/// update, gradients that the program clears, and whether steps are recorded. StepCounter numbers the steps.
/// One thread, except `fails` and `blind`.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "probe/snapshot/model.h"
#include "probe/step/step_counter.h"

namespace nanquest {

class StepMachine {
 public:
  /// How far the step is.
  enum class Stage : std::uint8_t {
    forward,    ///< no backward pass ran yet; also at the start, and after a step that was given up
    gradients,  ///< a backward pass ran
    by_hand,    ///< the program wrote a weight without an optimizer: an update whose end no event shows
    updated,    ///< an optimizer has written; another one may follow, until the next pass begins
  };
  enum class Update : std::uint8_t {
    none,
    closure,   ///< an optimizer runs that computes gradients itself; each of these is judged
    awaiting,  ///< the optimizer is about to write, or writes, and the gate has not answered yet
    judged,    ///< the same, and it has answered
  };
  /// Gradients that the program clears.
  enum class Cleared : std::uint8_t {
    no,
    in_pass,  ///< since the last pass began, and since the last backward
    earlier,  ///< since the last backward, in a pass before this one
    reused,   ///< since the last pass began, and new ones were computed since
  };
  enum class Recording : std::uint8_t {
    on,
    paused,    ///< steps are counted and nothing else
    resuming,  ///< until the next step begins
  };
  enum class Event : std::uint8_t {
    pass_begins,
    gradients_accumulate,
    backward_ends,
    gradients_cleared,
    hand_written,
    closure_begins,
    update_begins,
    gate_answered,
    update_ends,
    step_begins,
    given_up,
    pause,
    resume,
  };
  /// What a new pass begins.
  enum class Begins : std::uint8_t {
    nothing,
    step,
    record,  ///< the record of the same step starts again: what ran before was not part of it
    micro_batch,
  };
  struct Judgement {
    std::int64_t step = 0;
    Gate gate = Gate::ok;
  };

  /// A forward pass that will be differentiated begins. `held()`: whether the program holds results of the
  /// passes; `left()`: whether anything of the auxiliary passes is still alive. Each is called only where
  /// needed.
  template <class Held, class Left>
  Begins pass_begins(const Held& held, const Left& left);
  /// A pass begins that no update will follow (a teacher's), between two steps.
  template <class Left>
  Begins aside_begins(const Left& left);
  /// The pass runs, after its beginning was handled.
  void pass_runs(bool aside = false) { ++(aside ? asides_ : forwards_); }
  void backward_begins(bool accumulates) {
    if (accumulates) take(Event::gradients_accumulate);
  }
  void backward_ends();
  /// A gradient was computed that is differentiated again: the step goes on.
  void inner_gradient() { forwards_ = forwards_ < 1 ? forwards_ : 1; }
  void gradients_cleared() { take(Event::gradients_cleared); }
  void hand_written() { take(Event::hand_written); }
  /// An optimizer is about to write these weights (StepCounter). `closure`: it computes gradients first.
  void update_begins(const std::vector<std::int64_t>& weights, bool closure);
  /// The gate's answer for a step: the running one, or one that is over.
  void gate_answered(std::int64_t step, Gate gate);
  void update_ends() { take(Event::update_ends); }
  /// The step to which everything now running belongs begins.
  void step_begins();
  /// The program gave the step up: no update follows.
  void given_up();
  void pause() { take(Event::pause); }
  void resume() { take(Event::resume); }
  /// The probe is off from here on. From any thread.
  void fails() { off_ = true; }
  /// A graph of the device's work is being captured: what runs computes nothing.
  void captures(bool begins) { captures_ = begins; }

  Stage stage() const { return stage_; }
  Update update() const { return update_; }
  Recording recording() const { return recording_; }
  /// Nothing is looked at, whatever runs. From any thread.
  bool blind() const { return off_ || captures_; }
  bool off() const { return off_; }
  bool paused() const { return recording_ != Recording::on; }
  /// The step has its update: the next pass begins another one.
  bool over() const { return stage_ == Stage::by_hand || stage_ == Stage::updated; }
  /// Whether the next pass begins a step, whatever its inputs: no step is active, or only auxiliary passes
  /// ran.
  bool between_steps() const { return over() || !on_record_ || only_aside(); }
  /// Whether a write to a weight would be the program's own update, and the next differentiable op part of
  /// the next step.
  bool may_be_by_hand() const { return stage_ == Stage::gradients || stage_ == Stage::by_hand; }
  /// Samples named now join those of the step.
  bool joins_samples() const { return may_be_by_hand(); }
  /// There are gradients that an update may still use: a bad loss is judged together with them.
  bool update_may_follow() const {
    return stage_ == Stage::gradients && cleared_ != Cleared::in_pass && cleared_ != Cleared::earlier;
  }
  bool cleared_in_pass() const { return cleared_ == Cleared::in_pass || cleared_ == Cleared::reused; }
  /// A pass ran, and no backward pass ran since the step began.
  bool only_passes() const { return stage_ == Stage::forward && forwards_ > 0; }
  bool in_closure() const { return update_ == Update::closure; }

  /// The record of the running step is open; it was just opened again, and nothing has run in it.
  void record_opens();
  void record_closes() { on_record_ = false; }
  bool on_record() const { return on_record_; }

  /// Number, in the program's own count, of the step that runs or was just made; and how many were made.
  std::int64_t step() const { return counter_.step() + offset_; }
  std::int64_t made() const { return counter_.made(); }
  /// Number of the next or running step.
  std::int64_t coming() const { return counter_.made() + offset_; }
  /// More than one optimizer writes, each in its turn.
  bool several() const { return counter_.several(); }
  /// The running step (between two steps: the next one) has this number in the program's own count.
  void set_step(std::int64_t number) { offset_ = number - counter_.made(); }

  /// A step was reported as bad: as an incident, or as damage of one.
  void report(std::int64_t step) { reported_ = step; }
  bool reported() const { return reported(step()); }
  bool reported(std::int64_t step) const { return reported_ == step; }
  /// The gate's answer for the running step; `ok` before it has answered.
  Gate gate() const { return gate_; }
  /// The step whose update has begun and for which the gate has not answered yet.
  const std::optional<std::int64_t>& awaited() const { return awaited_; }
  const std::optional<Judgement>& last_judgement() const { return judgement_; }

 private:
  /// A program that evaluates with gradients enabled never updates; its forward passes are not one endless
  /// step. A rollout's are: the program holds them until its end.
  static constexpr int kForwardsWithoutBackward = 64;
  /// At most this many auxiliary passes (of a teacher, for example) come before a step; an evaluation is
  /// longer.
  static constexpr int kPassesAside = 16;

  void take(Event event);
  /// The record holds auxiliary passes only.
  bool only_aside() const {
    return on_record_ && asides_ > 0 && forwards_ == 0 && stage_ != Stage::gradients;
  }

  Stage stage_ = Stage::forward;
  Update update_ = Update::none;
  Cleared cleared_ = Cleared::no;
  Recording recording_ = Recording::on;
  std::atomic<bool> captures_{false}, off_{false};
  bool on_record_ = false;
  int forwards_ = 0;  ///< passes since the last backward, as far as they are on record
  int asides_ = 0;    ///< auxiliary passes at the start of the record
  StepCounter counter_;
  std::int64_t offset_ = 0, reported_ = -1'000'000;
  Gate gate_ = Gate::ok;
  std::optional<std::int64_t> awaited_;
  std::optional<Judgement> judgement_;
};

template <class Held, class Left>
StepMachine::Begins StepMachine::pass_begins(const Held& held, const Left& left) {
  take(Event::pass_begins);
  if (over()) return Begins::step;
  if (!on_record_ || (forwards_ >= kForwardsWithoutBackward && !held()) || (only_aside() && !left()))
    return Begins::record;
  return forwards_ == 0 && stage_ == Stage::gradients ? Begins::micro_batch : Begins::nothing;
}

template <class Left>
StepMachine::Begins StepMachine::aside_begins(const Left& left) {
  if (over()) return Begins::step;
  return !on_record_ || asides_ >= kPassesAside || !left() ? Begins::record : Begins::nothing;
}

}  // namespace nanquest
