#include "probe/step/step_machine.h"

#include <span>

namespace nanquest {
namespace {

using Machine = StepMachine;
using Stage = Machine::Stage;
using Update = Machine::Update;
using Cleared = Machine::Cleared;
using Recording = Machine::Recording;
using Event = Machine::Event;

/// The state that follows an event. An event without a row leaves the state as it is.
template <class State>
struct Row {
  State from;
  Event event;
  State to;
};

constexpr Row<Stage> kStages[] = {
    {Stage::forward, Event::backward_ends, Stage::gradients},
    {Stage::forward, Event::update_ends, Stage::updated},
    {Stage::gradients, Event::hand_written, Stage::by_hand},
    {Stage::gradients, Event::update_ends, Stage::updated},
    {Stage::gradients, Event::step_begins, Stage::forward},
    {Stage::gradients, Event::given_up, Stage::forward},
    {Stage::by_hand, Event::update_ends, Stage::updated},
    {Stage::by_hand, Event::step_begins, Stage::forward},
    {Stage::updated, Event::step_begins, Stage::forward},
};

constexpr Row<Update> kUpdates[] = {
    {Update::none, Event::closure_begins, Update::closure},
    {Update::none, Event::update_begins, Update::awaiting},
    {Update::closure, Event::update_begins, Update::awaiting},
    {Update::closure, Event::update_ends, Update::none},
    {Update::awaiting, Event::gate_answered, Update::judged},
    {Update::awaiting, Event::closure_begins, Update::closure},
    {Update::awaiting, Event::update_ends, Update::none},
    {Update::awaiting, Event::step_begins, Update::none},  // the update was not made
    {Update::judged, Event::closure_begins, Update::closure},
    {Update::judged, Event::update_begins, Update::awaiting},
    {Update::judged, Event::update_ends, Update::none},
    {Update::judged, Event::step_begins, Update::none},
};

constexpr Row<Cleared> kCleared[] = {
    {Cleared::no, Event::gradients_cleared, Cleared::in_pass},
    {Cleared::in_pass, Event::pass_begins, Cleared::earlier},
    {Cleared::in_pass, Event::gradients_accumulate, Cleared::reused},
    {Cleared::in_pass, Event::step_begins, Cleared::reused},
    {Cleared::in_pass, Event::given_up, Cleared::reused},
    {Cleared::earlier, Event::gradients_cleared, Cleared::in_pass},
    {Cleared::earlier, Event::gradients_accumulate, Cleared::no},
    {Cleared::earlier, Event::step_begins, Cleared::no},
    {Cleared::earlier, Event::given_up, Cleared::no},
    {Cleared::reused, Event::gradients_cleared, Cleared::in_pass},
    {Cleared::reused, Event::pass_begins, Cleared::no},
};

constexpr Row<Recording> kRecordings[] = {
    {Recording::on, Event::pause, Recording::paused},
    {Recording::paused, Event::resume, Recording::resuming},
    {Recording::resuming, Event::pause, Recording::paused},
    {Recording::resuming, Event::step_begins, Recording::on},
};

template <class State>
void follow(std::span<const Row<State>> table, Event event, State& state) {
  for (const Row<State>& row : table)
    if (row.from == state && row.event == event) {
      state = row.to;
      return;
    }
}

}  // namespace

void StepMachine::take(Event event) {
  follow<Stage>(kStages, event, stage_);
  follow<Update>(kUpdates, event, update_);
  follow<Cleared>(kCleared, event, cleared_);
  follow<Recording>(kRecordings, event, recording_);
}

void StepMachine::backward_ends() {
  take(Event::backward_ends);
  forwards_ = 0;
}

void StepMachine::update_begins(const std::vector<std::int64_t>& weights, bool closure) {
  (void)counter_.update(weights);
  take(closure ? Event::closure_begins : Event::update_begins);
  awaited_ = step();
}

void StepMachine::gate_answered(std::int64_t step, Gate gate) {
  judgement_ = {step, gate};
  if (awaited_ == step) {
    awaited_.reset();
    take(Event::gate_answered);
  }
  if (this->step() == step) gate_ = gate;
}

void StepMachine::step_begins() {
  take(Event::step_begins);
  (void)counter_.begin();
}

void StepMachine::given_up() {
  counter_.give_up();
  take(Event::given_up);
}

void StepMachine::record_opens() {
  on_record_ = true;
  forwards_ = asides_ = 0;
  gate_ = Gate::ok;
}

}  // namespace nanquest
