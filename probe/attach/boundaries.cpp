// Where a step begins and ends, and what is looked at then.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/graph_holder.h"
#include "probe/attach/session.h"
#include "probe/step/left_behind.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

/// A program that evaluates with gradients on never updates; its forward passes are not one endless step.
/// Those of a rollout are, which is held until its end.
constexpr int kForwardsWithoutBackward = 64;

/// The number at the beginning of a storage.
at::Tensor number_in(const c10::Storage& storage, at::ScalarType type) {
  return at::empty({0}, at::TensorOptions(type)).set_(storage, 0, {}, {});
}

}  // namespace

bool AttachSession::may_be_differentiated() const {
  return trace_ && trace_->graph_held && trace_->graph_held();
}

StepAnswer AttachSession::begin_forward() {
  StepAnswer answer;
  listen();
  safely("a new step", [&] {
    if (!in_closure_) (void)set_phase(Phase::forward);
    answer = std::exchange(pending_, {});
    // Accumulated gradients are judged before the update; without backward, or once they are cleared, there
    // will be none.
    const bool given_up = !updated_ && !by_hand_ && (!differentiated_ || cleared_);
    if (given_up && pass_went_bad()) answer = look_back("the program goes on without an update");
    if (updated_ || by_hand_) {
      start_step();
    } else if (!trace_ || (trace_->forwards >= kForwardsWithoutBackward && !may_be_differentiated())) {
      new_trace();
    } else if (trace_->forwards == 0 && differentiated_) {
      set_micro_batch(current_micro_batch() + 1);
    }
    if (trace_) ++trace_->forwards;
  });
  return answer;
}

void AttachSession::remember_damage() {
  if (reported_step_ == step() &&
      !incidents_.all_damaged(names_.parameters.size() + names_.buffers.size() + names_.states.size()))
    incidents_.left_behind(non_finite_state());
}

void AttachSession::start_step() {
  if (by_hand_) {  // nobody said that the update was over
    remember_damage();
    write_recording(pending_);
    undo_.forget();
  }
  close_trace();
  updated_ = by_hand_ = cleared_ = differentiated_ = norm_bad_ = false;
  (void)set_phase(Phase::forward);
  (void)steps_.begin();
  release_weights();
  losses_.clear();
  norm_.reset();
  set_micro_batch(0);
  new_trace();
}

void AttachSession::note_scaled(const at::Tensor& scaled, const at::Tensor& loss) {
  safely("a scaled loss", [&] { losses_.scaled(scaled, loss); });
}

void AttachSession::begin_backward(const std::vector<at::Tensor>& roots, bool accumulates) {
  listen();
  safely("the loss", [&] {
    for (const at::Tensor& root : roots) losses_.started(root, accumulates);
    if (accumulates) cleared_ = false;
  });
}

void AttachSession::end_backward() {
  safely("backward", [&] {
    differentiated_ = true;
    if (trace_) trace_->forwards = 0;
  });
}

void AttachSession::inner_gradient() {
  safely("a gradient on the way", [&] {
    if (!trace_) return;
    trace_->inner_gradients = true;
    trace_->last_scalar = {};
    trace_->forwards = std::min(trace_->forwards, 1);  // none: another micro-batch
  });
}

void AttachSession::made_by_pass(const at::Tensor& result) {
  safely("a forward pass", [&] {
    if (trace_ && result.grad_fn()) trace_->graph_held = graph_holder(result);
  });
}

void AttachSession::gradients_cleared() {
  cleared_ = true;
}

StepAnswer AttachSession::clipped(const at::Tensor& norm, const Weights& weights) {
  StepAnswer answer;
  safely("the norm of the gradients", [&] {
    norm_ = norm.detach();
    if (!norm_.is_cpu() || holds_finite(norm_)) return;
    norm_bad_ = true;
    if (reported_step_ == step()) return;
    bind(weights);
    const GateResult seen = gate_.run(1.0, losses_.total());
    write_incident(Gate::non_finite, sentence(seen, true), answer);
  });
  return answer;
}

bool AttachSession::pass_went_bad() const {
  if (losses_.bad() || norm_bad_) return true;
  if (differentiated_ || !trace_ || trace_->forwards == 0) return false;
  // The sum over a meta-learner's tasks is bad from one of them on, and not given up for that.
  if (trace_->inner_gradients && trace_->scalar_held && trace_->scalar_held()) return false;
  const c10::Storage& last = trace_->last_scalar;
  const at::ScalarType type = trace_->last_scalar_type;
  if (!last || last.device() != at::kCPU || last.nbytes() < c10::elementSize(type)) return false;
  return !holds_finite(number_in(last, type));
}

StepAnswer AttachSession::look_back(const char* how) {
  StepAnswer answer;
  answer.step = step();
  if (reported_step_ != step()) {
    at::Tensor loss = losses_.telling();
    if (!loss.defined() && trace_ && trace_->last_scalar) {
      loss = number_in(trace_->last_scalar, trace_->last_scalar_type);
      losses_.started(loss, /*accumulates=*/true);
    }
    const double value = loss.defined() ? loss.item().toDouble() : 0;
    write_incident(Gate::non_finite, loss_sentence(value) + "; " + how, answer);
  }
  answer.skip = options_.skip_bad_updates;
  give_up_step();
  return answer;
}

void AttachSession::give_up_step() {
  const GateResult seen = gate_.run(1.0, losses_.telling());
  record_.begin({.step = step(), .loss_scale = loss_scale_, .sample_ids = sample_ids_});
  record_.gated(Gate::non_finite, seen, gate_);
  steps_.give_up();
  sample_ids_.clear();
  losses_.clear();
  norm_.reset();
  norm_bad_ = cleared_ = differentiated_ = false;
  set_micro_batch(0);
  close_trace();
}

void AttachSession::set_samples(std::vector<std::string> ids) {
  if (updated_ || !differentiated_) sample_ids_.clear();
  sample_ids_.insert(sample_ids_.end(), ids.begin(), ids.end());
}

StepAnswer AttachSession::look_at_what_raised(const std::string& raised) {
  StepAnswer answer;
  if (reported_step_ == step() || !on_record()) return answer;
  const at::Tensor bad = rounds_->recorder().last_non_finite();
  if (!bad.defined()) return answer;
  losses_.started(bad, /*accumulates=*/true);  // what stands at the end of what was computed
  write_incident(Gate::non_finite,
                 raised + " ended the program, and the last that was computed holds " +
                     (std::isnan(bad.item().toDouble()) ? "NaN" : "Inf"),
                 answer);
  give_up_step();
  return answer;
}

StepAnswer AttachSession::program_ends(const std::string& raised) {
  StepAnswer answer;
  safely("the end", [&] {
    answer = std::exchange(pending_, {});
    if (updated_ || by_hand_) return;
    if (pass_went_bad())
      answer = look_back("the program ended there");
    else if (!raised.empty())
      answer = look_at_what_raised(one_line(raised));
  });
  return answer;
}

StepAnswer AttachSession::before_update(const Update& update, const Weights& weights, bool gradients_follow) {
  safely("the beginning of the update", [&] {
    if (gradients_follow && (updated_ || !trace_)) start_step();
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
  if (observer_ && rounds_ && !trace_ && !by_hand_ && rounds_->recorder().idle()) observer_->rest();
  return answer;
}

StepAnswer AttachSession::judge(const Update& update) {
  StepAnswer answer;
  safely("the gate", [&] {
    const std::int64_t now = answer.step = step();
    const GateResult seen = gate_.run(1.0, losses_.total());
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
    answer.gradients_bad = !seen.finite() || norm_bad_;
    answer.scale_overflow = answer.gate == Gate::scale_overflow;
    if (answer.gate == Gate::non_finite && reported_step_ != now)
      write_incident(answer.gate, sentence(seen, norm_bad_), answer);
    report_spoiled_buffer(answer);
    answer.skip = options_.skip_bad_updates && answer.gate == Gate::non_finite;
    if (!incidents_.beginning_known())
      append(answer.summary, incidents_.began_with(now, non_finite_state(), answer.gate != Gate::ok));
    if (answer.gate == Gate::ok) incidents_.was_well();
    if (trace_ && answer.gate == Gate::ok && reported_step_ != now) rounds_->healthy(now, names_, batch_);
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

std::string AttachSession::spoiled_state() {
  const int every = options_.probe.check_state_every;
  if (every <= 0) return "";
  const NamedTensors states = names_.states.living();
  std::int64_t elements = 0;
  bool on_cpu = true;
  for (const auto& [name, state] : states) {
    elements += state.numel();
    on_cpu = on_cpu && state.is_cpu();
  }
  if (!worth_every_step(elements, on_cpu) && step() % every != 0) return "";
  const std::string bad = first_non_finite(state_pass_, states);
  if (trace_) trace_->states_finite = bad.empty();
  return bad.empty() ? bad : "optimizer state " + bad;
}

std::string AttachSession::hidden_damage() {
  // An overflow that a loss scaler sees to is no damage.
  if (!trace_ || !trace_->watched || trace_->gate != Gate::ok || reported_step_ == step()) return "";
  if (!rounds_->recorder().hides_damage()) return "";
  StepNames named;
  return hidden_damage_.in(rounds_->tables(*rounds_->now(), names_, batch_, {}, named).recording.doc);
}

std::string AttachSession::damage_after_update() {
  if (!record_.after_update(step())) return "a weight is NaN or Inf after the update";
  if (trace_) trace_->weights_finite = record_.measured();
  // A fused optimizer is given overflowed gradients as memory to write, and leaves the update out itself.
  if (trace_ && trace_->watched && trace_->gate != Gate::scale_overflow &&
      rounds_->recorder().left_non_finite(trace_->update_begins, Phase::optimizer))
    return "the update wrote NaN or Inf";
  if (const std::string state = spoiled_state(); !state.empty())
    return state + " is NaN or Inf after the update";
  return "";
}

void AttachSession::report_spoiled_buffer(StepAnswer& answer) {
  const int every = options_.probe.check_state_every;
  if (!trace_ || !rounds_->now() || every <= 0 || reported_step_ == step()) return;
  const bool all = step() % every == 0;
  NamedTensors written;
  for (std::size_t i = 0; i < names_.buffers.size(); ++i)
    if (rounds_->recorder().wrote(names_.buffers.tensor(i).address()))
      written.emplace_back(names_.buffers.name(i), names_.buffers.tensor(i).lock());
  if (written.empty()) return;
  const std::string name = spoiled_buffer(rounds_->recorder(), written, all);
  if (name.empty()) return;
  const bool skipped = trace_->gate == Gate::scale_overflow && !options_.skip_bad_updates;
  answer.gate = Gate::non_finite;
  write_incident(answer.gate,
                 "buffer " + name + " became NaN or Inf" +
                     (skipped ? ", and stays so although the update is left out" : ""),
                 answer);
}

void AttachSession::report_hidden_damage(StepAnswer& answer) {
  const std::string hidden = hidden_damage();
  if (hidden.empty()) return;
  // Found, but nothing that the program computes is harmed: no reason to stop it.
  write_incident(Gate::ok, hidden, answer);
  answer.stops = false;
}

StepAnswer AttachSession::after_update() {
  StepAnswer answer;
  listen();
  safely("after the update", [&] {
    (void)set_phase(Phase::forward);
    in_closure_ = false;
    const std::string what = damage_after_update();
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
    release_weights();
    undo_.forget();
    sample_ids_.clear();
    updated_ = true;
  });
  return answer;
}

}  // namespace nanquest::attach
