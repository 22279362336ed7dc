// The forward and backward passes of a step: what they show, and what happens to a step that is given up.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/session.h"
#include "probe/step/one_line.h"

namespace nanquest::attach {
StepAnswer AttachSession::begin_forward() {
  StepAnswer answer;
  listen();
  safely("a new step", [&] {
    if (!machine_.in_closure()) (void)set_phase(Phase::forward);
    hear(Hear::come);
    look_between(pending_);
    answer = std::exchange(pending_, {});
    judge_pass(Fact::no_update_follows, /*ends=*/false, answer);
    const auto begins = machine_.pass_begins([&] { return results_.held(); },
                                             [&] { return rounds_->recorder().left_something(); });
    begin(begins, /*aside=*/false);
  });
  return answer;
}

void AttachSession::begin_aside() {
  if (!rounds_ || !between_steps()) return;
  listen();
  safely("a pass aside", [&] {
    begin(machine_.aside_begins([&] { return rounds_->recorder().left_something(); }), /*aside=*/true);
    (void)set_phase(Phase::forward);
  });
}

void AttachSession::begin(StepMachine::Begins what, bool aside) {
  using enum StepMachine::Begins;
  if (what == step) start_step();
  if (what == record) new_trace();
  if (what == micro_batch) count_micro_batch(current_micro_batch() + 1);
  machine_.pass_runs(aside);
}

void AttachSession::set_told_micro_batch(int index) {
  told_micro_batch_ = index;
  set_micro_batch(std::max(index, 0));
}

void AttachSession::note_scaled(const at::Tensor& scaled, const at::Tensor& loss) {
  safely("a scaled loss", [&] { losses_.scaled(scaled, loss); });
}

void AttachSession::begin_backward(const std::vector<at::Tensor>& roots, bool accumulates) {
  listen();
  safely("the loss", [&] {
    hear(Hear::come);
    if (accumulates && results_.in_doubt()) settle_doubt(roots);
    for (const at::Tensor& root : roots) losses_.started(root, accumulates);
    machine_.backward_begins(accumulates);
  });
}

void AttachSession::end_backward() {
  safely("backward", [&] { machine_.backward_ends(); });
}

void AttachSession::inner_gradient() {
  safely("a gradient on the way", [&] {
    machine_.inner_gradient();
    results_.inner_gradient();
  });
}

void AttachSession::made_by_pass(const at::Tensor& result) {
  safely("a forward pass", [&] {
    if (machine_.on_record() && result.grad_fn()) results_.made(result);
  });
}

void AttachSession::gradients_cleared() {
  machine_.gradients_cleared();
}

StepAnswer AttachSession::clipped(const at::Tensor& norm, const Weights& weights) {
  StepAnswer answer;
  safely("the norm of the gradients", [&] {
    if (machine_.paused()) return;
    if (!norm_.found(norm) || machine_.reported()) return;
    tensors_.bind(weights);
    const GateResult seen = gate_.run(1.0, losses_.total());
    write_incident(Gate::non_finite, {what_is_bad(seen, /*norm_bad=*/true)}, answer);
  });
  return answer;
}

void AttachSession::set_samples(std::vector<std::string> ids) {
  if (!machine_.joins_samples()) sample_ids_.clear();
  sample_ids_.insert(sample_ids_.end(), ids.begin(), ids.end());
}

StepAnswer AttachSession::program_ends(const std::string& raised) {
  StepAnswer answer;
  safely("the end", [&] {
    hear(Hear::all);
    late_due_ = true;
    look_between(pending_);
    answer = std::exchange(pending_, {});
    if (machine_.stage() == StepMachine::Stage::gradients && derivatives_.any() && raised.empty()) {
      updated_by_hand(derivatives_.first_op());  // new weights may have been made: no event shows that
      answer = std::exchange(pending_, {});
    }
    if (machine_.over()) return;
    if (!judge_pass(Fact::program_ended, /*ends=*/true, answer) && !raised.empty())
      answer = look_at_what_raised(one_line(raised));
  });
  return answer;
}

}  // namespace nanquest::attach
