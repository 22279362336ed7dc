// Where a step begins and ends, and the gate before its update.
#include <ATen/ATen.h>

#include <cmath>
#include <utility>

#include "probe/attach/session.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {

void AttachSession::pause() {
  safely("a pause", [&] {
    resumes_ = false;
    if (std::exchange(paused_, true)) return;
    if (trace_) trace_->keeps = false;
    close_trace();
    cut_tape("steps were not recorded in a pause");
    // What steps read is kept from being overwritten only as long as somebody is told of it.
    if (!inside_observed_op()) rounds_.reset();
  });
}

void AttachSession::end_pause() {
  if (!std::exchange(resumes_, false)) return;
  paused_ = false;
  begin_rounds();
}

void AttachSession::start_step() {
  if (by_hand_) {  // nobody said that the update was over
    if (rounds_) rounds_->recorder().updated();
    remember_damage();
    write_recording(pending_);
    undo_.forget();
  }
  close_trace();
  end_pause();
  updated_ = by_hand_ = cleared_ = differentiated_ = norm_bad_ = false;
  (void)set_phase(Phase::forward);
  (void)steps_.begin();
  release_weights();
  losses_.clear();
  norm_.reset();
  count_micro_batch(0);
  new_trace();
}

StepAnswer AttachSession::before_update(const Update& update, const Weights& weights, bool gradients_follow) {
  safely("the beginning of the update", [&] {
    if (gradients_follow && (updated_ || !trace_)) start_step();
    if (gradients_follow) cut_tape("the optimizer computes gradients itself");
    bind(weights);
    (void)steps_.update(weights.numbers);
    in_closure_ = gradients_follow;
    // What a program does after it wrote a weight itself is told by its data (settle_phases).
    if (!by_hand_) (void)set_phase(Phase::optimizer);
    if (trace_) trace_->update_begins = ops_so_far();
    if (trace_ && gradients_follow && trace_->watched) rounds_->watch_update();
    if (trace_ && gradients_follow && !trace_->watched)
      trace_->keeps = rounds_->begin_update(0, at::kCPU, true);
  });
  StepAnswer answer = gradients_follow ? StepAnswer{} : judge(update);
  // After a hand-written update nobody says that it is over.
  if (observer_ && rounds_ && !trace_ && !by_hand_ && !followed_ && rounds_->recorder().idle())
    observer_->rest();
  return answer;
}

StepAnswer AttachSession::judge(const Update& update) {
  StepAnswer answer;
  safely("the gate", [&] {
    const std::int64_t now = answer.step = step();
    if (paused_) {
      norm_.reset();
      return;
    }
    const GateResult seen = gate_.run(1.0, losses_.total());
    loss_ = losses_.empty() ? std::numeric_limits<double>::quiet_NaN() : seen.loss;
    if (norm_.defined() && !norm_.is_cpu()) norm_bad_ = !holds_finite(norm_);
    norm_.reset();
    answer.gate = judge_.judge(seen, {.loss_scale = update.loss_scale,
                                      .scaler_acts = update.scale_overflow,
                                      .norm_bad = norm_bad_,
                                      .min_loss_scale = options_.probe.min_loss_scale});
    if (answer.gate == Gate::scale_overflow) answer.summary = judge_.calibration();
    loss_scale_ = update.loss_scale;
    if (trace_) trace_->gate = answer.gate;
    if (!record_.join(now))
      record_.begin(
          {.step = now, .lr = update.lr, .loss_scale = update.loss_scale, .sample_ids = sample_ids_});
    record_.gated(answer.gate, seen, gate_);
    if (options_.tape > 0 && rounds_ && !in_closure_)
      rounds_->recorder().passed_gate({.step = now, .rate = update.lr, .loss = loss_}, losses_.telling());
    answer.gradients_bad = !seen.finite() || norm_bad_;
    answer.scale_overflow = answer.gate == Gate::scale_overflow;
    if (answer.gate == Gate::non_finite && reported_step_ != now)
      write_incident(answer.gate, sentence(seen, norm_bad_), answer);
    report_spoiled_buffer(answer);
    answer.skip = options_.skip_bad_updates && answer.gate == Gate::non_finite;
    if (!incidents_.beginning_known())
      append(answer.summary, incidents_.began_with(now, non_finite_state(), answer.gate != Gate::ok));
    if (answer.gate == Gate::ok) incidents_.was_well();
    if (trace_ && answer.gate == Gate::ok && reported_step_ != now) {
      foresee(answer);  // while nothing new runs on the device since the gate has waited for it
      rounds_->healthy(now, names_, batch_);
    }
    if (trace_ && !in_closure_) pass_gate(answer, std::isfinite(update.lr));
    if (in_closure_) losses_.clear();  // each evaluation is judged by its own
  });
  return answer;
}

std::uint64_t AttachSession::bytes_of_update(at::Device& device) {
  std::uint64_t weights = 0;
  for (const std::size_t index : bound_) {
    const at::Tensor& weight = gate_.parameters()[index];
    if (!weight.is_cpu()) device = weight.device();
    weights += weight.nbytes();
  }
  if (state_bytes_.first != names_.states.size()) {
    state_bytes_ = {names_.states.size(), 0};
    for (const auto& [name, state] : names_.states.living()) state_bytes_.second += state.nbytes();
  }
  // Two moments a weight, before any are known.
  return weights + (state_bytes_.first ? state_bytes_.second : 2 * weights);
}

bool AttachSession::watches_update() {
  if (options_.probe.level == Level::watch || options_.record_steps.count(step())) return true;
  at::Device device = at::kCPU;
  const std::uint64_t bytes = bytes_of_update(device);
  return rounds_->affords(bytes, device);
}

void AttachSession::pass_gate(StepAnswer& answer, bool rate_is_finite) {
  if (trace_->watched) {
    if (watches_update()) {
      rounds_->watch_update();  // what it does wrong is told in this step: it need not stay
      return;
    }
    report_hidden_damage(answer);
    return close_trace();
  }
  // An incident's file has been written; what its update does is a consequence.
  if (reported_step_ != step()) {
    if (trace_->keeps) return;  // another optimizer's turn
    // With such a rate every weight is lost: what does it is wanted, whatever it costs.
    const bool asked = options_.record_steps.count(step()) > 0 || !rate_is_finite;
    at::Device device = at::kCPU;
    const std::uint64_t bytes = bytes_of_update(device);
    trace_->keeps = rounds_->begin_update(bytes, device, asked);
    if (trace_->keeps) return;
  }
  write_recording(answer);
  close_trace();
}

StepAnswer AttachSession::after_update() {
  StepAnswer answer;
  listen();
  safely("after the update", [&] {
    (void)set_phase(Phase::forward);
    in_closure_ = false;
    const std::string what = paused_ ? "" : damage_after_update();
    if (reported_step_ != step() && !what.empty() &&
        (incidents_.began_well() || !incidents_.since_beginning(non_finite_state()))) {
      answer.gate = Gate::non_finite;
      write_incident(answer.gate, what, answer, /*update_made=*/true);
    }
    report_spoiled_buffer(answer);
    report_hidden_damage(answer);
    if (rounds_) append(answer.summary, rounds_->announcement());
    remember_damage();
    write_recording(answer);
    // Its tables are closed once they are written; else another optimizer may still have its turn.
    if (!answer.file.empty() || !steps_.several()) close_trace();
    if (trace_) trace_->update_ends = ops_so_far();
    if (rounds_) {
      rounds_->recorder().updated();
      if (record::Tape* tape = rounds_->recorder().tape()) append(answer.summary, tape->complaint());
    }
    release_weights();
    undo_.forget();
    sample_ids_.clear();
    updated_ = true;
  });
  return answer;
}

}  // namespace nanquest::attach
