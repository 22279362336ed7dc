// The optimizer's part of a step: measured, and recorded when it looks dangerous.
#include <ATen/ATen.h>

#include <cmath>
#include <exception>
#include <utility>

#include "probe/guard/probe.h"
#include "probe/observe/step_scope.h"

namespace nanquest::guard {
namespace {

/// Gradients whose squares (Adam's second moment) come near the largest value of the weights' format.
double dangerous_amax(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kHalf ? 1e2 : parameter.scalar_type() == at::kDouble ? 1e150 : 1e18;
}

}  // namespace

bool GuardedProbe::suspicious(std::int64_t step) const {
  if (options_.level == Level::watch || step < record_updates_until_ || !(std::abs(last_.lr) < 1e30))
    return true;                 // the largest fp32 value is 3.4e38
  if (listening_) return false;  // the tape records this update; a second recording would end the tape
  for (const auto& [name, p] : parameters_)
    if (last_amax_ > dangerous_amax(p)) return true;
  return false;
}

Fact GuardedProbe::spoiled(std::int64_t step, const std::string& first_bad) const {
  const std::int64_t since = check_.last_finite();
  const bool earlier = since >= 0 && since + 1 < step;
  return {.kind = earlier ? Fact::bad_since : Fact::update_left_bad,
          .name = first_bad,
          .step = step,
          .since = since};
}

StepReport GuardedProbe::update(std::int64_t step, const std::function<void()>& work) {
  Answer answer;
  update_here(step, work, answer);
  agree_on_update(step, answer);
  return answer.report();
}

void GuardedProbe::update_here(std::int64_t step, const std::function<void()>& work, Answer& answer) {
  if (recording() && last_.step == step && suspicious(step)) return recorded_update(step, work, answer);
  {
    const PhaseScope phase(Phase::optimizer);
    work();
  }
  end_update();
  if (after_update(step)) return;
  answer.gate = Gate::non_finite;
  answer.state_corrupt = true;
  answer.told = state_trouble_;
}

void GuardedProbe::recorded_update(std::int64_t step, const std::function<void()>& work, Answer& answer) {
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
    return;
  }
  Recording recording = record_step(state, guarded);
  if (thrown) std::rethrow_exception(thrown);  // thrown by the program itself: passed on unchanged
  StateCheck::Names bad;
  safely("after_update", [&] {
    (void)history_.after_update(step);
    bad = check_.bad_now();
  });
  if (bad.empty()) check_.finite_after(step);
  if (bad.empty() || check_.since_beginning(bad)) return;
  answer.gate = Gate::non_finite;
  answer.told.push_back(spoiled(step, bad.front()));
  safely("capture", [&] {
    begin_incident(step);
    MadePages pages([&](Facts&) { return std::move(recording); });
    write({answer.gate}, pages, answer);
    note_incident(answer);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < live.size(); ++i) live[i].second.detach().copy_(before[i].second);
    undo();
    corrupt_ = false;
  });
  answer.state_corrupt = !on() || corrupt_;
  record_updates_until_ = step + kRecordedAfterTrouble;
}

bool GuardedProbe::after_update(std::int64_t step) {
  const ObserverPause ours;
  if (!recording()) {
    corrupt_ = false;  // not looked at: the next bad step will report it
    return true;
  }
  safely("after_update", [&] {
    const bool measured_fine = history_.after_update(step), look = check_.due(step);
    const StateCheck::Names bad = look || !measured_fine ? check_.bad_now() : StateCheck::Names();
    corrupt_ = !bad.empty() && !check_.since_beginning(bad);
    if (bad.empty() && look) check_.finite_after(step);
    if (!corrupt_) return;
    state_trouble_.clear();
    if (check_.carries_on(bad)) {
      if (writer_.carry_on()) state_trouble_ = {check_.carried_on(step, bad, writer_.last_step())};
    } else {
      Answer answer;
      answer.gate = Gate::non_finite;
      answer.told = {spoiled(step, bad.front()),
                     {.kind = Fact::update_not_recorded, .number = kRecordedAfterTrouble}};
      state_trouble_ = answer.told;
      record_updates_until_ = step + kRecordedAfterTrouble;
      begin_incident(step);
      note_incident(answer);
    }
    check_.left_behind(bad);
  });
  return !corrupt_;
}

}  // namespace nanquest::guard
