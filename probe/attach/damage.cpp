// What a step did to weights, buffers and states: what is looked for, and what is told of it.
#include "probe/attach/session.h"
#include "probe/step/left_behind.h"
#include "probe/step/weight_watch.h"

namespace nanquest::attach {

void AttachSession::remember_damage() {
  if (reported_step_ == step() &&
      !incidents_.all_damaged(names_.parameters.size() + names_.buffers.size() + names_.states.size()))
    incidents_.left_behind(non_finite_state());
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

}  // namespace nanquest::attach
