// The states of a step, without tensors: the loops that people write, as events.
#include "probe/step/step_machine.h"

#include <gtest/gtest.h>

#include <string>

namespace nanquest {
namespace {

using Stage = StepMachine::Stage;
using Update = StepMachine::Update;
using Begins = StepMachine::Begins;

/// Drives a machine as a session does.
struct Program {
  StepMachine machine;
  bool held = false;  ///< the program holds what its passes gave
  bool left = true;   ///< something of the passes aside is still there

  Begins begin(Begins what, bool aside) {
    if (what == Begins::step) machine.step_begins();
    if (what == Begins::step || what == Begins::record) machine.record_opens();
    machine.pass_runs(aside);
    return what;
  }
  Begins forward() {
    return begin(machine.pass_begins([&] { return held; }, [&] { return left; }), false);
  }
  Begins aside() {
    return begin(machine.aside_begins([&] { return left; }), true);
  }
  void backward(bool accumulates = true) {
    machine.backward_begins(accumulates);
    machine.backward_ends();
  }
  void update(std::int64_t weight = 1, Gate gate = Gate::ok) {
    machine.update_begins({weight}, /*closure=*/false);
    machine.gate_answered(machine.step(), gate);
    machine.update_ends();
  }
};

TEST(StepMachine, a_step_is_forward_backward_update) {
  Program p;
  EXPECT_TRUE(p.machine.between_steps());
  for (std::int64_t step = 0; step < 3; ++step) {
    EXPECT_EQ(p.forward(), step == 0 ? Begins::record : Begins::step);
    EXPECT_EQ(p.machine.step(), step);
    EXPECT_EQ(p.machine.stage(), Stage::forward);
    EXPECT_FALSE(p.machine.between_steps());
    p.backward();
    EXPECT_EQ(p.machine.stage(), Stage::gradients);
    EXPECT_TRUE(p.machine.update_may_follow());
    p.update();
    EXPECT_EQ(p.machine.stage(), Stage::updated);
    EXPECT_EQ(p.machine.update(), Update::none);
    EXPECT_TRUE(p.machine.between_steps());
    EXPECT_EQ(p.machine.made(), step + 1);
  }
}

TEST(StepMachine, a_pass_after_a_backward_is_another_micro_batch) {
  Program p;
  p.forward();
  EXPECT_EQ(p.forward(), Begins::nothing) << "two passes before one backward";
  p.backward();
  EXPECT_EQ(p.forward(), Begins::micro_batch);
  EXPECT_EQ(p.forward(), Begins::nothing);
  p.backward();
  p.update();
  EXPECT_EQ(p.forward(), Begins::step);
}

TEST(StepMachine, several_optimizers_share_a_step) {
  Program p;
  for (std::int64_t step = 0; step < 3; ++step) {
    p.forward();
    p.backward();
    p.update(1);
    EXPECT_EQ(p.machine.step(), step);
    p.update(2);
    EXPECT_EQ(p.machine.step(), step);
  }
  EXPECT_TRUE(p.machine.several());
}

TEST(StepMachine, a_closure_is_judged_once_an_evaluation) {
  Program p;
  p.forward();
  p.machine.update_begins({1}, /*closure=*/true);
  for (int evaluation = 0; evaluation < 2; ++evaluation) {
    p.forward();
    EXPECT_TRUE(p.machine.in_closure());
    EXPECT_EQ(p.machine.step(), 0);
    p.backward();
    p.machine.gate_answered(0, Gate::ok);
    EXPECT_EQ(p.machine.update(), Update::closure);
  }
  p.machine.update_ends();
  EXPECT_FALSE(p.machine.in_closure());
  EXPECT_EQ(p.forward(), Begins::step);
}

TEST(StepMachine, a_program_writes_its_weights_itself) {
  Program p;
  p.forward();
  EXPECT_FALSE(p.machine.may_be_by_hand()) << "an initialisation";
  p.backward();
  EXPECT_TRUE(p.machine.may_be_by_hand());
  p.machine.hand_written();
  EXPECT_EQ(p.machine.stage(), Stage::by_hand);
  EXPECT_TRUE(p.machine.over());
  p.machine.update_begins({kByHand}, /*closure=*/false);
  p.machine.gate_answered(0, Gate::ok);
  EXPECT_EQ(p.forward(), Begins::step);
  EXPECT_EQ(p.machine.step(), 1);
  EXPECT_EQ(p.machine.update(), Update::none) << "nobody said that the update was over";
}

TEST(StepMachine, an_optimizer_may_follow_what_was_written_by_hand) {
  Program p;
  p.forward();
  p.backward();
  p.machine.hand_written();
  p.machine.update_begins({kByHand}, /*closure=*/false);
  p.update();
  EXPECT_EQ(p.machine.stage(), Stage::updated);
  EXPECT_FALSE(p.machine.may_be_by_hand());
  EXPECT_EQ(p.machine.step(), 0);
}

TEST(StepMachine, gradients_that_are_cleared_bring_no_update) {
  Program p;
  p.forward();
  p.machine.gradients_cleared();
  EXPECT_TRUE(p.machine.cleared_in_pass());
  p.backward();
  EXPECT_TRUE(p.machine.update_may_follow()) << "cleared before these were taken";
  p.machine.gradients_cleared();
  EXPECT_FALSE(p.machine.update_may_follow());
  p.forward();
  EXPECT_FALSE(p.machine.update_may_follow());
  EXPECT_FALSE(p.machine.cleared_in_pass()) << "in the pass before";
  p.backward(/*accumulates=*/false);
  EXPECT_FALSE(p.machine.update_may_follow()) << "returned gradients are no new ones";
  p.backward();
  EXPECT_TRUE(p.machine.update_may_follow());
}

TEST(StepMachine, a_step_that_is_given_up_counts) {
  Program p;
  p.forward();
  p.backward();
  p.machine.record_closes();
  p.machine.given_up();
  EXPECT_EQ(p.machine.step(), 1);
  EXPECT_EQ(p.machine.stage(), Stage::forward);
  EXPECT_EQ(p.forward(), Begins::record) << "the step has begun already";
  EXPECT_EQ(p.machine.step(), 1);
}

TEST(StepMachine, passes_aside_begin_a_step_and_are_forgotten_with_their_results) {
  Program p;
  EXPECT_EQ(p.aside(), Begins::record);
  EXPECT_TRUE(p.machine.between_steps());
  EXPECT_EQ(p.aside(), Begins::nothing);
  EXPECT_EQ(p.forward(), Begins::nothing) << "what the teacher gave is the step's";
  EXPECT_FALSE(p.machine.between_steps());
  p.backward();
  p.update();
  EXPECT_EQ(p.aside(), Begins::step);
  p.left = false;
  EXPECT_EQ(p.forward(), Begins::record) << "the teacher was only tried";
  EXPECT_EQ(p.machine.step(), 1);
}

TEST(StepMachine, an_evaluation_with_gradients_on_is_no_endless_step) {
  for (const bool rollout : {false, true}) {
    Program p;
    p.held = rollout;
    p.forward();
    int anew = 0;
    for (int pass = 0; pass < 200; ++pass) anew += p.forward() == Begins::record;
    EXPECT_EQ(anew, rollout ? 0 : 3);
  }
}

TEST(StepMachine, an_inner_gradient_makes_no_micro_batch) {
  Program p;
  p.forward();
  p.machine.inner_gradient();
  EXPECT_EQ(p.forward(), Begins::nothing);
}

TEST(StepMachine, a_pause_ends_with_a_step) {
  using Recording = StepMachine::Recording;
  Program p;
  p.forward();
  p.machine.pause();
  p.machine.record_closes();
  p.machine.resume();
  EXPECT_TRUE(p.machine.paused()) << "in the middle of a step";
  p.machine.pause();
  EXPECT_EQ(p.machine.recording(), Recording::paused);
  p.machine.resume();
  p.backward();
  p.update();
  EXPECT_EQ(p.machine.step(), 0) << "steps are counted in a pause";
  p.forward();
  EXPECT_FALSE(p.machine.paused());
  p.machine.resume();
  EXPECT_EQ(p.machine.recording(), Recording::on) << "nothing to resume";
}

TEST(StepMachine, a_capture_and_a_failure_make_it_blind) {
  StepMachine machine;
  machine.captures(true);
  EXPECT_TRUE(machine.blind());
  EXPECT_FALSE(machine.off());
  machine.captures(false);
  EXPECT_FALSE(machine.blind());
  machine.fails();
  EXPECT_TRUE(machine.blind());
}

TEST(StepMachine, the_gate_may_answer_a_step_later) {
  Program p;
  p.forward();
  p.backward();
  p.machine.update_begins({1}, /*closure=*/false);
  EXPECT_EQ(p.machine.awaited(), 0);
  p.machine.update_ends();
  p.forward();
  p.backward();
  EXPECT_EQ(p.machine.step(), 1);
  EXPECT_EQ(p.machine.awaited(), 0) << "judgement pending";
  p.machine.gate_answered(0, Gate::non_finite);
  EXPECT_FALSE(p.machine.awaited());
  EXPECT_EQ(p.machine.last_judgement()->step, 0);
  EXPECT_EQ(p.machine.last_judgement()->gate, Gate::non_finite);
  EXPECT_EQ(p.machine.gate(), Gate::ok) << "of the step that runs nothing is known";
  p.machine.update_begins({1}, /*closure=*/false);
  p.machine.gate_answered(1, Gate::spike);
  EXPECT_EQ(p.machine.gate(), Gate::spike);
  EXPECT_EQ(p.machine.update(), Update::judged);
}

TEST(StepMachine, a_bad_step_is_told_once_whatever_it_is_called) {
  Program p;
  p.machine.set_step(1000);
  p.forward();
  EXPECT_EQ(p.machine.step(), 1000);
  EXPECT_EQ(p.machine.coming(), 1000);
  EXPECT_FALSE(p.machine.reported());
  p.machine.report(p.machine.step());
  EXPECT_TRUE(p.machine.reported());
  p.backward();
  p.update();
  EXPECT_TRUE(p.machine.reported());
  EXPECT_EQ(p.machine.coming(), 1001);
  p.forward();
  EXPECT_FALSE(p.machine.reported());
}

}  // namespace
}  // namespace nanquest
