// What follows a bad step: undone, looked into, run again under the recorder, written down.
#include <cmath>
#include <utility>

#include "probe/guard/incident.h"
#include "probe/guard/one_line.h"
#include "probe/guard/probe.h"
#include "probe/observe/copy_memory.h"
#include "probe/snapshot/run_dir.h"

namespace nanquest::guard {

void GuardedProbe::failed(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                          StepReport& report) {
  undo();
  if (report.gate != Gate::non_finite) return;
  const std::string corrupt = corrupt_state();
  corrupt_ = report.state_corrupt = !corrupt.empty();
  if (corrupt_) {
    append(report.summary, corrupt + " was already non-finite when the step began");
    if (good_state_step_ >= 0)
      append(report.summary, "it was finite after step " + std::to_string(good_state_step_) +
                                 "; what spoiled it since then is not on record");
    record_updates_until_ = inputs.step + kRecordedAfterTrouble;
  }
  if (!recording()) return;
  std::string what;
  if (captures_ < options_.max_incidents)
    what = capture(inputs, compute, report);
  else
    what = "no snapshot: the limit of " + std::to_string(options_.max_incidents) + " is reached";
  append(report.summary, what);
  append(report.summary, report.incident);
  note_incident(inputs.step, report);
}

void GuardedProbe::note_incident(std::int64_t step, StepReport& report) {
  ++incidents_;
  record_.regate(report.gate);
  const Status noted = log_->incident(step, report.gate, report.incident, report.summary);
  if (!noted) append(report.summary, "manifest not written: " + one_line(noted.error().text()));
}

std::string GuardedProbe::capture(const StepInputs& inputs, const std::function<at::Tensor()>& compute,
                                  StepReport& report) {
  const auto failed_again = [&](const at::Tensor& loss) {
    const GateResult as_is = gate_.run(1, loss);
    if (!std::isfinite(as_is.loss) || !as_is.finite()) return true;
    return inputs.loss_scale != 1 && !gate_.run(inputs.loss_scale).finite();
  };
  ++captures_;
  const IncidentOutcome outcome =
      capture_incident(state_of(inputs), report.gate, compute, failed_again,
                       free_incident_path(options_.run_dir, inputs.step, options_.rank));
  release_spare_copies();
  undo();
  report.incident = outcome.path;
  return outcome.text;
}

StepState GuardedProbe::state_of(const StepInputs& inputs) const {
  StepState state;
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

std::string GuardedProbe::corrupt_state() {
  const NamedTensors optimizer = optimizer_ ? optimizer_() : NamedTensors{};
  const std::pair<const char*, const NamedTensors*> kinds[] = {
      {"parameter ", &parameters_}, {"buffer ", &buffers_}, {"optimizer state ", &optimizer}};
  for (const auto& [kind, tensors] : kinds)
    if (const std::string bad = first_non_finite(check_, *tensors); !bad.empty()) return kind + bad;
  return "";
}

}  // namespace nanquest::guard
