// The optimizer's part of a step: measured, and recorded when it looks dangerous.
#include <ATen/ATen.h>

#include <cmath>
#include <exception>
#include <utility>

#include "probe/guard/probe.h"
#include "probe/observe/step_scope.h"
#include "probe/snapshot/run_dir.h"
#include "probe/step/incident.h"
#include "probe/step/one_line.h"
#include "probe/trace/culprit.h"

namespace nanquest::guard {
namespace {

/// Gradients whose squares (Adam's second moment) come near the end of the format that the weights are in.
double dangerous_amax(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kHalf ? 1e2 : parameter.scalar_type() == at::kDouble ? 1e150 : 1e18;
}

}  // namespace

bool GuardedProbe::suspicious(std::int64_t step) const {
  if (options_.level == Level::watch || step < record_updates_until_ || !(std::abs(last_.lr) < 1e30))
    return true;                 // fp32 ends at 3.4e38
  if (listening_) return false;  // the tape has it, and would end with a recording of its own
  for (const auto& [name, p] : parameters_)
    if (last_amax_ > dangerous_amax(p)) return true;
  return false;
}

std::string GuardedProbe::spoiled(std::int64_t step, const std::string& first_bad) {
  std::string text = "step " + std::to_string(step) + ": the update left " + first_bad + " non-finite";
  if (good_state_step_ >= 0 && good_state_step_ + 1 < step)
    text = "step " + std::to_string(step) + ": " + first_bad + " is non-finite; it was not after step " +
           std::to_string(good_state_step_) + ", so an update since then spoiled it";
  return text;
}

StepReport GuardedProbe::update(std::int64_t step, const std::function<void()>& work) {
  StepReport report = update_here(step, work);
  agree_on_update(step, report);
  return report;
}

StepReport GuardedProbe::update_here(std::int64_t step, const std::function<void()>& work) {
  StepReport report;
  if (recording() && last_.step == step && suspicious(step)) return recorded_update(step, work);
  {
    const PhaseScope phase(Phase::optimizer);
    work();
  }
  end_update();
  if (after_update(step)) return report;
  report.gate = Gate::non_finite;
  report.state_corrupt = true;
  report.summary = state_trouble_;
  return report;
}

StepReport GuardedProbe::recorded_update(std::int64_t step, const std::function<void()>& work) {
  StepReport report;
  if (listening_) {
    recorder_.cut_tape("an update was recorded by itself", /*every_step=*/false);
    listening_.reset();
    update_is_next_ = false;
  }
  NamedTensors live, before;
  StepState state;
  safely("save", [&] {
    live = parameters_;
    if (optimizer_)
      for (const auto& moment : optimizer_()) live.push_back(moment);
    for (const auto& [name, t] : live) before.emplace_back(name, t.detach().clone());
    state = state_of(last_);
  });
  std::exception_ptr thrown;
  const auto guarded = [&] {
    const PhaseScope phase(Phase::optimizer);
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    return at::Tensor();
  };
  if (!on()) {
    guarded();
    if (thrown) std::rethrow_exception(thrown);
    return report;
  }
  Recording recording = record_step(state, guarded);
  if (thrown) std::rethrow_exception(thrown);  // the program's own: it passes unchanged
  Incidents::Names bad;
  safely("after_update", [&] {
    (void)record_.after_update(step);
    bad = corrupt_state();
  });
  if (bad.empty()) good_state_step_ = step;
  if (bad.empty() || incidents_.since_beginning(bad)) return report;
  report.gate = Gate::non_finite;
  report.summary = spoiled(step, bad.front());
  safely("capture", [&] {
    recording.doc.gate = Gate::non_finite;
    const std::string path = free_incident_path(options_.run_dir, step, options_.rank);
    incidents_.begin(step);
    std::string why;
    if (recording.doc.culprit.op != kNone) append(report.summary, one_line(describe_culprit(recording.doc)));
    if (incidents_.may_write(why)) {
      const Status written = write_snapshot(recording, path);
      if (written) report.incident = path;
      why = written ? path : "snapshot not written: " + one_line(written.error().text());
    }
    append(report.summary, why);
    note_incident(report);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < live.size(); ++i) live[i].second.detach().copy_(before[i].second);
    undo();
    corrupt_ = false;
  });
  report.state_corrupt = !on() || corrupt_;
  record_updates_until_ = step + kRecordedAfterTrouble;
  return report;
}

bool GuardedProbe::after_update(std::int64_t step) {
  const ObserverPause ours;
  if (!recording()) {
    corrupt_ = false;  // not looked at: the next bad step says
    return true;
  }
  safely("after_update", [&] {
    const bool measured_fine = record_.after_update(step);
    const bool look = options_.check_state_every > 0 && step % options_.check_state_every == 0;
    const Incidents::Names bad = look || !measured_fine ? corrupt_state() : Incidents::Names();
    corrupt_ = !bad.empty() && !incidents_.since_beginning(bad);
    if (bad.empty() && look) good_state_step_ = step;
    if (!corrupt_) return;
    if (incidents_.carries_on(bad)) {
      state_trouble_ = incidents_.carry_on(step, bad);
      incidents_.left_behind(bad);
      return;
    }
    state_trouble_ = spoiled(step, bad.front()) + "; the update is not on record (the next " +
                     std::to_string(kRecordedAfterTrouble) + " of Probe::update are)";
    record_updates_until_ = step + kRecordedAfterTrouble;
    StepReport report;
    report.gate = Gate::non_finite;
    report.summary = state_trouble_;
    incidents_.begin(step);
    note_incident(report);
    incidents_.left_behind(bad);
  });
  return !corrupt_;
}

}  // namespace nanquest::guard
