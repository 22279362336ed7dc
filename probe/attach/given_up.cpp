// What becomes of a step that its program gives up: a bad pass that no update follows.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/session.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

/// The number at the beginning of a storage.
at::Tensor number_in(const c10::Storage& storage, at::ScalarType type) {
  return at::empty({0}, at::TensorOptions(type)).set_(storage, 0, {}, {});
}

}  // namespace

bool AttachSession::judge_pass(const char* how, bool ends, StepAnswer& answer) {
  if (updated_ || by_hand_) return false;
  if (trace_ && trace_->doubt) {
    if (!ends && !cleared_in_pass_ && trace_->doubt->graph.held()) return false;
    const bool again = pass_went_bad();
    const at::Tensor loss = again ? number_in(trace_->last_scalar, trace_->last_scalar_type) : at::Tensor();
    answer = thrown_away(how);
    if (again) {  // a step of its own as well; the record of both is in the file of the first
      append(answer.summary, "so was the pass after it");
      losses_.started(loss, /*accumulates=*/true);
      give_up_step();
    }
    return true;
  }
  // Accumulated gradients are judged before the update; without backward, or once they are cleared, there
  // will be none.
  if ((differentiated_ && !cleared_ && !ends) || !pass_went_bad()) return false;
  if (!ends && may_share_backward()) {
    trace_->doubt = {trace_->last_scalar, trace_->last_scalar_type, trace_->scalar_graph, sample_ids_};
    return false;
  }
  answer = look_back(how);
  return true;
}

bool AttachSession::may_share_backward() const {
  // Who wants bad passes left out wants their buffers put back before the next pass reads them: no time to
  // wait.
  return trace_ && !options_.skip_bad_updates && !differentiated_ && !cleared_in_pass_ && losses_.empty() &&
         trace_->scalar_graph.held();
}

void AttachSession::settle_doubt(const std::vector<at::Tensor>& roots) {
  const auto bad = [](const at::Tensor& root) {
    return root.defined() && root.numel() == 1 && root.is_cpu() && root.is_floating_point() &&
           !holds_finite(root);
  };
  // A loss that is bad itself is judged with its gradients, however the passes hang together.
  if (trace_->doubt->graph.reached_from(roots) || std::any_of(roots.begin(), roots.end(), bad)) {
    std::vector<std::string> samples = std::move(trace_->doubt->samples);
    samples.insert(samples.end(), sample_ids_.begin(), sample_ids_.end());
    sample_ids_ = std::move(samples);
    trace_->doubt.reset();
    return;
  }
  // What runs is the next step's, of which nothing stays on record.
  StepAnswer answer = thrown_away("the program goes on without an update");
  append(answer.summary, pending_.summary);
  pending_ = std::move(answer);
}

StepAnswer AttachSession::thrown_away(const char* how) {
  Doubt doubt = std::move(*trace_->doubt);
  trace_->doubt.reset();
  trace_->last_scalar = std::move(doubt.scalar);
  trace_->last_scalar_type = doubt.scalar_type;
  std::vector<std::string> of_next = std::exchange(sample_ids_, std::move(doubt.samples));
  StepAnswer answer = look_back(how);
  sample_ids_ = std::move(of_next);
  return answer;
}

bool AttachSession::pass_went_bad() const {
  if (losses_.bad() || norm_bad_) return true;
  if (differentiated_ || !trace_ || trace_->forwards == 0) return false;
  // The sum over a meta-learner's tasks is bad from one of them on, and not given up for that.
  if (trace_->inner_gradients && trace_->scalar_graph.held()) return false;
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
  count_micro_batch(0);
  close_trace();
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

}  // namespace nanquest::attach
