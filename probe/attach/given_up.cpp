// What happens to a step that its program gives up: a bad pass that no update follows.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/attach/session.h"

namespace nanquest::attach {
bool AttachSession::judge_pass(Fact::Kind how, bool ends, StepAnswer& answer) {
  if (machine_.over()) return false;
  if (results_.in_doubt()) {
    if (!ends && !machine_.cleared_in_pass() && results_.doubtful_held()) return false;
    const bool again = pass_went_bad();
    const at::Tensor loss = again ? results_.number() : at::Tensor();
    answer = thrown_away(how);
    if (again) {  // a step of its own as well; the first one's file holds the record of both
      answer.told.push_back({Fact::next_pass_bad});
      losses_.started(loss, /*accumulates=*/true);
      give_up_step();
    }
    return true;
  }
  // Accumulated gradients are judged before the update. Without a backward pass, or once they are cleared,
  // there are none.
  if ((machine_.update_may_follow() && !ends) || !pass_went_bad()) return false;
  if (!ends && may_share_backward()) {
    results_.doubt(sample_ids_);
    return false;
  }
  answer = look_back(how);
  return true;
}

bool AttachSession::may_share_backward() const {
  // To skip bad passes, the policy must restore their buffers before the next pass reads them: there is no
  // time to wait.
  return machine_.on_record() && !options_.skip_bad_updates &&
         machine_.stage() == StepMachine::Stage::forward && !machine_.cleared_in_pass() && losses_.empty() &&
         results_.number_held();
}

void AttachSession::settle_doubt(const std::vector<at::Tensor>& roots) {
  if (results_.doubtful_shares(roots)) {
    std::vector<std::string> samples = results_.settle();
    samples.insert(samples.end(), sample_ids_.begin(), sample_ids_.end());
    sample_ids_ = std::move(samples);
    return;
  }
  // What runs belongs to the next step, of which nothing stays recorded.
  StepAnswer answer = thrown_away(Fact::no_update_follows);
  add(answer.told, std::move(pending_.told));
  pending_ = std::move(answer);
}

StepAnswer AttachSession::thrown_away(Fact::Kind how) {
  std::vector<std::string> of_next = std::exchange(sample_ids_, results_.throw_away());
  StepAnswer answer = look_back(how);
  sample_ids_ = std::move(of_next);
  return answer;
}

bool AttachSession::pass_went_bad() const {
  return losses_.bad() || norm_.bad() || (machine_.on_record() && machine_.only_passes() && results_.bad());
}

StepAnswer AttachSession::look_back(Fact::Kind how) {
  StepAnswer answer;
  answer.step = step();
  if (!machine_.paused() && !machine_.reported()) {
    at::Tensor loss = losses_.telling();
    if (!loss.defined() && machine_.on_record()) {
      loss = results_.number();
      losses_.started(loss, /*accumulates=*/true);
    }
    const double value = loss.defined() ? loss.item().toDouble() : 0;
    write_incident(Gate::non_finite, {{.kind = Fact::loss_bad, .value = value}, {how}}, answer);
  }
  answer.skip = options_.skip_bad_updates && !machine_.paused();
  give_up_step();
  return answer;
}

void AttachSession::give_up_step() {
  hear(Hear::all);
  if (!machine_.paused()) {
    const GateResult seen = gate_.run(1.0, losses_.telling());
    history_.begin({.step = step(), .loss_scale = loss_scale_, .sample_ids = sample_ids_});
    history_.gated(Gate::non_finite, seen, gate_);
  }
  machine_.given_up();
  sample_ids_.clear();
  losses_.clear();
  norm_.clear();
  count_micro_batch(0);
  close_trace();
}

StepAnswer AttachSession::look_at_what_raised(const std::string& raised) {
  StepAnswer answer;
  if (machine_.reported() || !on_record()) return answer;
  const at::Tensor bad = record::last_non_finite(rounds_->recorder().survivors(0));
  if (!bad.defined()) return answer;
  losses_.started(bad, /*accumulates=*/true);  // the end of what was computed
  write_incident(Gate::non_finite, {{.kind = Fact::raised, .name = raised, .value = bad.item().toDouble()}},
                 answer);
  give_up_step();
  return answer;
}

}  // namespace nanquest::attach
