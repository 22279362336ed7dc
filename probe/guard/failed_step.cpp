// What follows a bad step: undone, looked into, run again under the recorder, written down.
#include <cmath>
#include <utility>

#include "probe/guard/probe.h"
#include "probe/snapshot/run_dir.h"
#include "probe/step/incident.h"
#include "probe/step/left_behind.h"
#include "probe/step/one_line.h"
#include "probe/step/weight_watch.h"
#include "probe/tensor/copy_memory.h"

namespace nanquest::guard {

void GuardedProbe::failed(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                          StepReport& report) {
  const auto undone = [&] {
    recorded_.reset();
    undo();
  };
  if (report.gate != Gate::non_finite) return undone();
  // A step's own recording is written while the values that it refers to are still there.
  const bool news = recorded_ && !incidents_.carries_on(corrupt_state());
  if (news) write_recorded(inputs, report);
  undone();
  const Incidents::Names corrupt = corrupt_state();
  corrupt_ = report.state_corrupt = !corrupt.empty();
  if (!news && incidents_.carries_on(corrupt)) {
    append(report.summary, incidents_.carry_on(inputs.step, corrupt));
    incidents_.left_behind(corrupt);
    return;
  }
  if (corrupt_) {
    append(report.summary, corrupt.front() + " was already non-finite when the step began");
    if (good_state_step_ >= 0)
      append(report.summary, "it was finite after step " + std::to_string(good_state_step_) +
                                 "; what spoiled it since then is not on record");
    record_updates_until_ = inputs.step + kRecordedAfterTrouble;
  }
  if (!recording()) return;
  if (!news) {
    incidents_.begin(inputs.step);
    std::string what;
    const bool may = incidents_.may_write(what);
    if (all_run_again(may)) {
      what = capture(inputs, compute, report);
    } else if (may) {
      what = "not recorded: another process of this run can't run the step again";
    }
    append(report.summary, what);
    append(report.summary, report.incident);
  }
  note_incident(report);
  incidents_.left_behind(corrupt);
}

void GuardedProbe::write_recorded(const StepInputs& inputs, StepReport& report) {
  incidents_.begin(inputs.step);
  std::string what;
  if (incidents_.may_write(what)) {
    const StepState state = state_of(inputs);
    Recording recording = recorded_->end(state);
    std::unique_ptr<record::Step> held;
    std::string complaint;
    if (listening_) recording.tape = recorded_->tape(state, held, complaint);
    const IncidentOutcome outcome =
        write_incident(recording, report.gate,
                       free_incident_path(options_.run_dir, inputs.step, options_.rank), {}, &election_);
    report.incident = outcome.path;
    what = outcome.text;
    append(what, one_line(complaint));
  }
  append(report.summary, what);
  append(report.summary, report.incident);
}

void GuardedProbe::look_at_buffers(const StepInputs& inputs, StepReport& report) {
  if (report.gate != Gate::ok || options_.check_state_every <= 0) return;
  const bool all = inputs.step % options_.check_state_every == 0;
  const std::string name = spoiled_buffer(recorder_, buffers_, all);
  if (name.empty()) return;
  report.gate = Gate::non_finite;
  record_.regate(report.gate);
  append(report.summary, "step " + std::to_string(inputs.step) + ": buffer " + name +
                             " became NaN or Inf, although loss and gradients are finite");
}

void GuardedProbe::look_for_hidden_damage(const StepInputs& inputs, StepReport& report) {
  if (options_.level != Level::watch || report.gate != Gate::ok) return;
  if (!recorded_->hides_damage()) return;
  const std::string hidden = hidden_.in(recorded_->end(state_of(inputs)).doc);
  if (hidden.empty()) return;
  append(report.summary, "step " + std::to_string(inputs.step) + ": " + hidden);
  write_recorded(inputs, report);
  append(report.summary, incidents_.end(Gate::ok, report.incident, report.summary));
}

void GuardedProbe::note_incident(StepReport& report) {
  record_.regate(report.gate);
  append(report.summary, incidents_.end(report.gate, report.incident, report.summary));
}

std::string GuardedProbe::capture(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                                  StepReport& report) {
  listening_.reset();  // the step is recorded by itself: one session at a time
  const auto failed_again = [&](const at::Tensor& loss) {
    const GateResult as_is = gate_.run(1, loss);
    if (!std::isfinite(as_is.loss) || !as_is.finite()) return true;
    return inputs.loss_scale != 1 && !gate_.run(inputs.loss_scale).finite();
  };
  const IncidentOutcome outcome =
      capture_incident(state_of(inputs), report.gate, compute, failed_again,
                       free_incident_path(options_.run_dir, inputs.step, options_.rank), &election_);
  release_spare_copies();
  undo();
  report.incident = outcome.path;
  return outcome.text;
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
  state.history = record_.tables();
  state.history_samples = record_.samples();
  return state;
}

Incidents::Names GuardedProbe::corrupt_state() {
  return Incidents::non_finite(check_, {parameters_, buffers_, optimizer_ ? optimizer_() : NamedTensors()});
}

}  // namespace nanquest::guard
