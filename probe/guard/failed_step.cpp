// What follows a bad step: the step is undone, run again under the recorder, and written to a file.
#include <cmath>
#include <utility>

#include "probe/guard/probe.h"
#include "probe/step/attempt.h"
#include "probe/step/one_line.h"
#include "probe/tensor/copy_memory.h"

namespace nanquest::guard {

void GuardedProbe::begin_incident(std::int64_t step) {
  writer_.begin(step);
  check_.incident(/*gate_failed=*/true);
}

void GuardedProbe::write(const IncidentWriter::Reason& reason, StepPages& pages, Answer& answer) {
  Facts told;
  answer.incident = writer_.write(reason, pages, told);
  add(answer.told, std::move(told));
  add_text(answer.told, answer.incident);
}

void GuardedProbe::failed(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                          Answer& answer) {
  const auto undone = [&] {
    recorded_.reset();
    undo();
  };
  if (answer.gate != Gate::non_finite) return undone();
  // A step's own recording is written while the values that it refers to are still there.
  const bool news = recorded_ && !check_.carries_on(check_.bad_now());
  if (news) write_recorded(inputs, answer);
  undone();
  const StateCheck::Names corrupt = check_.bad_now();
  corrupt_ = answer.state_corrupt = !corrupt.empty();
  if (!news && check_.carries_on(corrupt)) {
    if (writer_.carry_on())
      answer.told.push_back(check_.carried_on(inputs.step, corrupt, writer_.last_step()));
    check_.left_behind(corrupt);
    return;
  }
  if (corrupt_) {
    answer.told.push_back({Fact::bad_before, corrupt.front()});
    if (check_.last_finite() >= 0)
      answer.told.push_back({.kind = Fact::was_finite_after, .since = check_.last_finite()});
    record_updates_until_ = inputs.step + kRecordedAfterTrouble;
  }
  if (!recording()) return;
  if (!news) {
    begin_incident(inputs.step);
    const bool may = writer_.may_write(answer.told);
    if (all_run_again(may))
      capture(inputs, compute, answer);
    else if (may)
      answer.told.push_back({Fact::cannot_run_again});
  }
  note_incident(answer);
  check_.left_behind(corrupt);
}

void GuardedProbe::write_recorded(const StepInputs& inputs, Answer& answer) {
  begin_incident(inputs.step);
  const StepState state = state_of(inputs);
  std::unique_ptr<record::Step> held;
  MadePages pages([&](Facts&) { return recorded_->end(state); },
                  [&](Recording& recording, Facts& told) {
                    std::string complaint;
                    if (listening_) recording.tape = recorded_->tape(state, held, complaint);
                    add_text(told, one_line(complaint));
                  });
  write({answer.gate, !std::isfinite(answer.loss)}, pages, answer);
}

void GuardedProbe::look_at_buffers(const StepInputs& inputs, Answer& answer) {
  if (answer.gate != Gate::ok) return;
  const NamedTensors spoiled = check_.spoiled(recorder_, buffers_, inputs.step, {});
  if (spoiled.empty()) return;
  answer.gate = Gate::non_finite;
  history_.regate(answer.gate);
  answer.told.push_back({.kind = Fact::only_buffer_spoiled, .name = spoiled.front().first, .step = inputs.step});
}

void GuardedProbe::look_for_hidden_damage(const StepInputs& inputs, Answer& answer) {
  if (options_.level != Level::watch || answer.gate != Gate::ok) return;
  if (!recorded_->hides_damage() || !check_.hides_new_overflow(recorded_->end(state_of(inputs)).doc)) return;
  answer.told.push_back({.kind = Fact::hidden_overflow, .step = inputs.step});
  write_recorded(inputs, answer);
  add(answer.told, writer_.end(Gate::ok, answer.incident, answer.told));
}

void GuardedProbe::note_incident(Answer& answer) {
  history_.regate(answer.gate);
  add(answer.told, writer_.end(answer.gate, answer.incident, answer.told));
}

void GuardedProbe::capture(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                           Answer& answer) {
  listening_.reset();  // the step is recorded on its own: one session at a time
  const auto failed_again = [&](const at::Tensor& loss) {
    const GateResult as_is = gate_.run(1, loss);
    if (!std::isfinite(as_is.loss) || !as_is.finite()) return true;
    return inputs.loss_scale != 1 && !gate_.run(inputs.loss_scale).finite();
  };
  Facts failed = attempt("capture", [&] {
    MadePages pages([&](Facts& told) {
      Recording recording = record_step(state_of(inputs), compute);
      const bool reproduced = failed_again(recording.loss);
      if (!recording.failure.empty())
        told.push_back({Fact::rerun_threw, one_line(recording.failure)});
      else if (!reproduced)
        told.push_back({Fact::not_reproduced});
      if (!told.empty()) recording.notes.push_back(text_of(told));
      return recording;
    });
    write({answer.gate, !std::isfinite(answer.loss)}, pages, answer);
  });
  if (!failed.empty()) answer.told.push_back({Fact::capture_failed, "", failed.front().more});
  release_spare_copies();
  undo();
}

StepState GuardedProbe::state_of(const StepInputs& inputs) const {
  StepState state;
  state.embed_weights = options_.frozen_weights == FrozenWeights::embed;
  state.step = inputs.step;
  state.rank = options_.rank;
  state.world_size = options_.world_size;
  state.loss_scale = inputs.loss_scale;
  state.parameters = parameters_;
  state.buffers = buffers_;
  if (optimizer_) state.optimizer = optimizer_();
  state.batch = inputs.batch;
  state.sample_ids = inputs.sample_ids;
  state.sample_texts = inputs.sample_texts;
  state.config = options_.config;
  state.history = history_.tables();
  state.history_samples = history_.samples();
  return state;
}

}  // namespace nanquest::guard
