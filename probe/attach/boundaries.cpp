// Where a step begins and ends. The gate before its update: gate.cpp.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/session.h"

namespace nanquest::attach {

void AttachSession::pause() {
  safely("a pause", [&] {
    const bool was = machine_.paused();
    machine_.pause();
    hear(Hear::all);
    if (was) return;
    trace_.keeps = false;
    close_trace();
    cut_tape("steps were not recorded in a pause");
    // What steps read is kept from being overwritten only while the session observes ops.
    if (!inside_observed_op()) rounds_.reset();
  });
}

void AttachSession::start_step() {
  look_between(pending_);
  if (machine_.stage() == StepMachine::Stage::by_hand) {  // the end of the update was not reported
    if (rounds_) rounds_->recorder().updated();
    note_costs();
    remember_damage();
    write_recording(pending_);
    undo_.forget();
  }
  close_trace();
  const bool was_paused = machine_.paused();
  machine_.step_begins();
  if (was_paused && !machine_.paused()) begin_rounds();
  (void)set_phase(Phase::forward);
  tensors_.release();
  losses_.clear();
  norm_.clear();
  count_micro_batch(0);
  new_trace();
}

StepAnswer AttachSession::before_update(const Update& update, const Weights& weights, bool gradients_follow) {
  safely("the beginning of the update", [&] {
    using enum StepMachine::Stage;
    if (gradients_follow && (machine_.stage() == updated || !machine_.on_record())) start_step();
    if (gradients_follow) cut_tape("the optimizer computes gradients itself");
    tensors_.bind(weights);
    if (std::exchange(new_optimizer_, false)) {
      tensors_.renew();
      targets_.are_held(weights.tensors);
    }
    machine_.update_begins(weights.numbers, gradients_follow);
    hear(Hear::earlier);
    late_due_ = true;
    // Ops after the program wrote a weight itself get their phase from their data (settle_phases).
    if (machine_.stage() != by_hand) (void)set_phase(Phase::optimizer);
    if (!machine_.on_record()) return;
    trace_.update_begins = ops_so_far();
    if (!gradients_follow) return;
    if (trace_.watched)
      rounds_->watch_update();
    else
      trace_.keeps = rounds_->begin_update(0, at::kCPU, true);
  });
  StepAnswer answer = gradients_follow ? StepAnswer{} : judge(update);
  // The end of a hand-written update is not reported.
  if (observer_ && rounds_ && !machine_.on_record() && machine_.stage() != StepMachine::Stage::by_hand &&
      !followed_ && rounds_->recorder().idle())
    observer_->rest();
  return answer;
}

bool AttachSession::watches_update() {
  if (options_.probe.level == Level::watch || options_.record_steps.count(step())) return true;
  at::Device device = at::kCPU;
  const std::uint64_t bytes = tensors_.bytes_of_update(device);
  return rounds_->affords(bytes, device);
}

void AttachSession::note_replaced_moments() {
  const std::size_t freed = tensors_.names().states.freed();
  if (freed > std::exchange(states_freed_, freed)) risk_.changed();  // from a checkpoint, say
}

bool AttachSession::update_is_at_risk() {
  note_replaced_moments();
  if (!risk_.judge(gate_)) return false;
  at::Device device = at::kCPU;
  const std::uint64_t bytes = tensors_.bytes_of_update(device);
  return rounds_->has_room(bytes, device);
}

void AttachSession::pass_gate(StepAnswer& answer, const Update& update, bool later) {
  const bool at_risk = !later && update_is_at_risk();
  if (later) risk_.passed();  // nothing on the host has changed, and its gradients are not measured yet
  if (trace_.watched) {
    if (watches_update()) {
      rounds_->watch_update();  // its damage is reported in this step: it need not stay
      return;
    }
    report_hidden_damage(answer);
    return close_trace();
  }
  // An incident's file has been written; what this update does is a consequence.
  if (!machine_.reported()) {
    if (trace_.keeps) return;  // another optimizer's turn
    // With such a learning rate every weight is lost: record the update, whatever it costs. So must it be
    // where another optimizer's gate comes after it and will fail: without it nothing would be on record
    // there.
    const bool another_fails =
        std::any_of(update.gradients_to_come.begin(), update.gradients_to_come.end(),
                    [](const at::Tensor& gradient) { return gradient.is_cpu() && !all_finite(gradient); });
    const bool asked =
        options_.record_steps.count(step()) > 0 || !std::isfinite(update.lr) || at_risk || another_fails;
    at::Device device = at::kCPU;
    const std::uint64_t bytes = tensors_.bytes_of_update(device);
    trace_.keeps = rounds_->begin_update(bytes, device, asked, /*hold=*/later);
    if (trace_.keeps || later) return;
  }
  write_recording(answer);
  close_trace();
}

StepAnswer AttachSession::after_update() {
  StepAnswer answer;
  listen();
  safely("after the update", [&] {
    (void)set_phase(Phase::forward);
    report_damage(answer, /*update_made=*/true);
    report_hidden_damage(answer);
    if (rounds_) add_text(answer.told, rounds_->announcement());
    remember_damage();
    write_recording(answer);
    // Its tables are closed once they are written; else another optimizer may still have its turn, and what
    // the program does to its state before the next pass belongs to the step.
    if (!answer.file.empty()) close_trace();
    if (machine_.on_record()) trace_.update_ends = ops_so_far();
    if (rounds_) {
      rounds_->recorder().updated();
      if (record::Tape* tape = rounds_->recorder().tape()) add_text(answer.told, tape->complaint());
    }
    tensors_.release();
    derivatives_.forget();
    undo_.forget();
    if (!trace_.samples) trace_.samples = sample_ids_;
    sample_ids_.clear();
    machine_.update_ends();
    note_costs();
    hear(Hear::come);
  });
  return answer;
}

}  // namespace nanquest::attach
