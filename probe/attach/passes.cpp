// The passes of a step, forward and backward: what they tell, and what becomes of a step that is given up.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/graph_holder.h"
#include "probe/attach/session.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

/// A program that evaluates with gradients on never updates; its forward passes are not one endless step.
/// Those of a rollout are, which is held until its end.
constexpr int kForwardsWithoutBackward = 64;

/// So many passes of teachers and the like may come before a step; an evaluation of one is longer than that.
constexpr int kPassesAside = 16;

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
    } else if (!trace_ || (trace_->forwards >= kForwardsWithoutBackward && !may_be_differentiated()) ||
               (only_aside() && !rounds_->recorder().left_something())) {
      new_trace();
    } else if (trace_->forwards == 0 && differentiated_) {
      set_micro_batch(current_micro_batch() + 1);
    }
    if (trace_) ++trace_->forwards;
  });
  return answer;
}

void AttachSession::begin_aside() {
  if (!rounds_ || !between_steps()) return;
  listen();
  safely("a pass aside", [&] {
    if (updated_ || by_hand_)
      start_step();
    else if (!trace_ || trace_->asides >= kPassesAside || !rounds_->recorder().left_something())
      new_trace();
    (void)set_phase(Phase::forward);
    if (trace_) ++trace_->asides;
  });
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
    if (paused_) return;
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
  if (!paused_ && reported_step_ != step()) {
    at::Tensor loss = losses_.telling();
    if (!loss.defined() && trace_ && trace_->last_scalar) {
      loss = number_in(trace_->last_scalar, trace_->last_scalar_type);
      losses_.started(loss, /*accumulates=*/true);
    }
    const double value = loss.defined() ? loss.item().toDouble() : 0;
    write_incident(Gate::non_finite, loss_sentence(value) + "; " + how, answer);
  }
  answer.skip = options_.skip_bad_updates && !paused_;
  give_up_step();
  return answer;
}

void AttachSession::give_up_step() {
  if (!paused_) {
    const GateResult seen = gate_.run(1.0, losses_.telling());
    record_.begin({.step = step(), .loss_scale = loss_scale_, .sample_ids = sample_ids_});
    record_.gated(Gate::non_finite, seen, gate_);
  }
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

}  // namespace nanquest::attach
