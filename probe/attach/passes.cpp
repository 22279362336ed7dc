// The passes of a step, forward and backward: what they tell, and what becomes of a step that is given up.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/session.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
namespace {

/// A program that evaluates with gradients on never updates; its forward passes are not one endless step.
/// Those of a rollout are, which is held until its end.
constexpr int kForwardsWithoutBackward = 64;

/// So many passes of teachers and the like may come before a step; an evaluation of one is longer than that.
constexpr int kPassesAside = 16;

}  // namespace

bool AttachSession::may_be_differentiated() const {
  return trace_ && trace_->pass_graph.held();
}

StepAnswer AttachSession::begin_forward() {
  StepAnswer answer;
  listen();
  safely("a new step", [&] {
    if (!in_closure_) (void)set_phase(Phase::forward);
    answer = std::exchange(pending_, {});
    judge_pass("the program goes on without an update", /*ends=*/false, answer);
    cleared_in_pass_ = false;
    if (updated_ || by_hand_) {
      start_step();
    } else if (!trace_ || (trace_->forwards >= kForwardsWithoutBackward && !may_be_differentiated()) ||
               (only_aside() && !rounds_->recorder().left_something())) {
      new_trace();
    } else if (trace_->forwards == 0 && differentiated_) {
      count_micro_batch(current_micro_batch() + 1);
    }
    if (trace_) ++trace_->forwards;
  });
  return answer;
}

void AttachSession::set_told_micro_batch(int index) {
  told_micro_batch_ = index;
  set_micro_batch(std::max(index, 0));
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
    if (accumulates && trace_ && trace_->doubt) settle_doubt(roots);
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
    if (trace_ && result.grad_fn()) trace_->pass_graph = WeakGraph(result);
  });
}

void AttachSession::gradients_cleared() {
  cleared_ = cleared_in_pass_ = true;
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

void AttachSession::set_samples(std::vector<std::string> ids) {
  if (updated_ || !differentiated_) sample_ids_.clear();
  sample_ids_.insert(sample_ids_.end(), ids.begin(), ids.end());
}

StepAnswer AttachSession::program_ends(const std::string& raised) {
  StepAnswer answer;
  safely("the end", [&] {
    answer = std::exchange(pending_, {});
    if (updated_ || by_hand_) return;
    if (!judge_pass("the program ended there", /*ends=*/true, answer) && !raised.empty())
      answer = look_at_what_raised(one_line(raised));
  });
  return answer;
}

}  // namespace nanquest::attach
