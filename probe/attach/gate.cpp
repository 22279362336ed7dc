// The gate before an update: the look at loss and gradients, and its answer. On a CPU that is known at once.
// On a device it may come later: the update is made, and the answer is taken when the device has given it, at
// the latest before the next step's update. Until then the step stays on record, as it was at its gate.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

#include "probe/attach/session.h"

namespace nanquest::attach {
Awaited AttachSession::look_at_gradients(const Update& update) {
  Awaited it;
  it.update = update;
  it.step = step();
  it.round = rounds_ ? rounds_->number() : -1;
  it.losses = losses_;
  it.norm_bad = norm_.bad();
  it.trained = tensors_.trained();
  if (targets_.take()) history_.copied();
  it.one_norm = norm_.one();
  it.clip_norm = norm_.figure();
  it.graph_ran = graph_ran_in_ == it.step;
  gate_.start(it.look, 1.0, {losses_.total(), norm_.on_device(), update.scale, update.found_inf}, !together_);
  norm_.taken();
  return it;
}

bool AttachSession::may_come_later(const Awaited& look) {
  if (!options_.gate_later || !look.look.pending() || followed_ || machine_.in_closure() ||
      machine_.reported())
    return false;
  // Steps in which somebody waits for the device anyway, or that are told or kept whatever the gate says.
  if (options_.probe.level == Level::watch || (machine_.on_record() && trace_.watched) || options_.tape > 0 ||
      options_.record_steps.count(look.step) > 0 || check_.due(look.step) || !check_.beginning_known() ||
      look.update.scale_overflow || !std::isfinite(look.update.lr))
    return false;
  if (!machine_.on_record()) return true;  // what follows is about what is recorded
  note_replaced_moments();
  if (risk_.news()) return false;  // the update is recorded, once its gradients are known to be good
  if (options_.forecast && forecast_.due(look.step) && !forecast_.nearest().empty()) return false;
  at::Device device = at::kCPU;
  if (rounds_->may_hold(tensors_.bytes_of_update(device), device)) return true;
  if (!std::exchange(waits_told_, true))
    add_text(pending_.told,
             "each step waits for its gate: the device has no memory to hold what an update overwrites");
  return false;
}

bool AttachSession::withholds(Awaited& look) {
  word_ = {};
  if (!look.update.takes_word) return false;
  at::Tensor word = look.look.word();
  if (!word.defined()) {
    if (!std::exchange(waits_told_, true))
      add_text(pending_.told, "each step waits for its gate: its gradients do not all lie on devices");
    return false;
  }
  if (look.update.found_inf.defined())
    word = at::maximum(word, look.update.found_inf.to(word.device(), at::kFloat).reshape({}));
  if (!undo_.put_back_buffers_if(word)) {
    if (!std::exchange(waits_told_, true))
      add_text(pending_.told,
               "each step waits for its gate: its model has buffers that the device can't put back");
    return false;
  }
  may_be_put_back(undo_.buffers());
  word_ = {word, ++words_};
  look.withheld = words_;
  return true;
}

StepAnswer AttachSession::judge(const Update& update) {
  StepAnswer answer;
  word_ = {};
  safely("the gate", [&] {
    const std::int64_t now = answer.step = step();
    if (machine_.paused()) {
      norm_.taken();
      return;
    }
    Awaited look = look_at_gradients(update);
    look.joins = history_.join(now);
    if (!look.joins)
      history_.begin(
          {.step = now, .lr = update.lr, .loss_scale = update.loss_scale, .sample_ids = sample_ids_});
    const bool later = may_come_later(look) && (!options_.gate_withholds || withholds(look));
    left_out_ = false;
    trace_.outcome = {};
    if (!later) answered(look, answer, /*late=*/false);
    report_damage(answer, /*update_made=*/false);
    if (answer.scale_overflow && !machine_.reported()) add(answer.told, judge_.calibration());
    answer.skip |= options_.skip_bad_updates && answer.gate == Gate::non_finite;
    if (!check_.beginning_known())
      add(answer.told, check_.began(now, check_.bad_now(), answer.gate != Gate::ok));
    if (!later && answer.gate == Gate::ok) was_well();
    if (machine_.on_record() && answer.gate == Gate::ok && !machine_.reported()) {
      foresee(answer);  // while nothing new runs on the device since the gate has waited for it
      rounds_->healthy(now, tensors_.names(), batch_);
    }
    if (machine_.on_record() && later) trace_.outcome = rounds_->outcome(losses_.all(), gate_.parameters());
    if (machine_.on_record() && !machine_.in_closure()) pass_gate(answer, update, later);
    if (machine_.in_closure()) losses_.clear();  // each evaluation is judged on its own
    look.update.gradients_to_come.clear();       // kept alive until the gate only
    if (later) awaited_.push_back(std::move(look));
  });
  return answer;
}

void AttachSession::answered(Awaited& it, StepAnswer& answer, bool late) {
  const GateResult seen = gate_.finish(it.look);
  const bool scaler_acts = it.update.scale_overflow || it.look.number(kFoundInf).value_or(0) > 0;
  const bool norm_bad = it.norm_bad || !std::isfinite(it.look.number(kClipNorm).value_or(0));
  loss_ = it.losses.empty() ? std::numeric_limits<double>::quiet_NaN() : seen.loss;
  loss_scale_ = it.look.number(kScale).value_or(it.update.loss_scale);
  if (first_scale_ == 0) first_scale_ = loss_scale_;
  answer.gate = judge_.judge(seen, {.loss_scale = loss_scale_,
                                    .scaler_acts = scaler_acts,
                                    .norm_bad = norm_bad,
                                    .min_loss_scale = options_.probe.min_loss_scale});
  machine_.gate_answered(it.step, answer.gate);
  if (!it.joins) history_.scaled(loss_scale_);
  const double clip_norm =
      it.one_norm ? it.look.number(kClipNorm).value_or(it.clip_norm) : StepFigures::kUnknown;
  if (late) {
    history_.gated_later(it.joins, answer.gate, seen, gate_, clip_norm, it.trained);
  } else {
    norm_.judged(norm_bad);
    left_out_ = scaler_acts && answer.gate != Gate::ok && !options_.skip_bad_updates;
    history_.gated(answer.gate, seen, gate_, clip_norm, it.trained);
    if (options_.tape > 0 && rounds_ && !machine_.in_closure())
      rounds_->recorder().passed_gate({.step = it.step, .rate = it.update.lr, .loss = loss_},
                                      losses_.telling());
  }
  answer.gradients_bad = !seen.finite() || norm_bad;
  answer.scale_overflow = answer.gate == Gate::scale_overflow;
  answer.withheld = answer.gate == Gate::non_finite && (answer.gradients_bad || !together_) ? it.withheld : 0;
  if (answer.gate == Gate::non_finite && !machine_.reported(it.step)) {
    Facts what{what_is_bad(seen, norm_bad)};
    if (!late && left_out_) add(what, damage_of_passes());
    write_incident(answer.gate, what, answer, /*update_made=*/false, /*pages=*/nullptr, late ? &it : nullptr);
  }
  if (answer.scale_overflow) overflow_carries_on(answer, it, late);
  if (answer.gate == Gate::ok && !machine_.in_closure()) report_spike(it, seen, answer, late);
}

void AttachSession::hear(Hear which) {
  while (!awaited_.empty()) {
    const bool waits = which == Hear::all || (which == Hear::earlier && awaited_.front().step != step());
    if (!waits && !awaited_.front().look.ready()) return;
    Awaited it = std::move(awaited_.front());
    awaited_.pop_front();
    StepAnswer answer;
    answer.step = it.step;
    answered(it, answer, /*late=*/true);
    if (answer.scale_overflow && !machine_.reported(it.step)) add(answer.told, judge_.calibration());
    if (answer.gate == Gate::ok) was_well();
    if (it.withheld > 0 && answer.gate == Gate::ok && !std::isfinite(it.look.number(kScale).value_or(0)))
      answer.told.push_back({.kind = Fact::text,
                             .name = "its update is left out: the loss scale is not finite",
                             .step = it.step});
    // Unless withheld, its update was made, with whatever the gate would have found bad.
    remember_damage(it.step);
    if (rounds_) rounds_->answered(it.round, answer.gate == Gate::ok);
    if (!answer.told.empty() || answer.withheld > 0) late_.push_back(std::move(answer));
  }
}

}  // namespace nanquest::attach
