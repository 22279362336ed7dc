#include "probe/guard/probe.h"

#include <ATen/ATen.h>

#include <cmath>
#include <exception>
#include <utility>

#include "probe/step/attempt.h"

namespace nanquest::guard {
GuardedProbe::GuardedProbe(ProbeOptions options, std::optional<RunLog> log)
    : options_(std::move(options)),
      log_(std::move(log)),
      recorder_(
          {.keep_steps = 0,
           .tape = {.steps = options_.tape,
                    .room = {.share = options_.tape_memory_percent / 100, .folder = options_.tape_folder}}}),
      history_(options_),
      check_({{StateCheck::kParameter, [this] { return parameters_; }},
              {StateCheck::kBuffer, [this] { return buffers_; }},
              {StateCheck::kMoment, [this] { return optimizer_ ? optimizer_() : NamedTensors(); }}},
             options_.check_state_every),
      writer_(log_ ? &*log_ : nullptr, {.run_dir = options_.run_dir,
                                        .rank = options_.rank,
                                        .world_size = options_.world_size,
                                        .max_files = options_.max_incidents,
                                        .election = {.restart = options_.resume ? 1 : 0}}) {}

GuardedProbe::~GuardedProbe() {
  if (!finished_ && recording()) safely("close", [&] { (void)history_.finish(); });
}

void GuardedProbe::safely(const char* doing, const std::function<void()>& work) {
  if (Facts failed = attempt(doing, work); !failed.empty()) trouble_ = std::move(failed);
}

void GuardedProbe::watch_parameter(const std::string& name, const at::Tensor& parameter) {
  safely("watch_parameter", [&] {
    const std::size_t before = gate_.size();
    gate_.watch(parameter);
    if (gate_.size() == before) return;  // tied: known by its first name
    parameters_.emplace_back(name, parameter);
    history_.watch_parameter(name, parameter);
    undo_.watch_device(parameter.device());
  });
}

void GuardedProbe::watch_buffer(const std::string& name, const at::Tensor& buffer) {
  safely("watch_buffer", [&] {
    buffers_.emplace_back(name, buffer);
    undo_.watch_buffer(buffer);
  });
}

void GuardedProbe::watch_optimizer(std::function<NamedTensors()> state) {
  optimizer_ = std::move(state);
}

void GuardedProbe::watch_generator(at::Generator generator) {
  safely("watch_generator", [&] { undo_.watch_generator(std::move(generator)); });
}

void GuardedProbe::watch_undo(std::function<std::function<void()>()> save) {
  undo_.watch_host(std::move(save));
}

void GuardedProbe::begin(const StepInputs& inputs) {
  const ObserverPause ours;  // what the probe runs is not part of the program's step
  if (!devices_known_) undo_.watch_device(at::kCPU);
  devices_known_ = true;
  if (recording()) history_.begin(inputs);
  undo_.save();
  const bool watch = options_.level == Level::watch;
  recorded_.reset();
  end_update();
  if (!recording() || !records_steps()) return;
  listen_for_tape();
  recorded_ = std::make_unique<RecordSession>(recorder_, state_of(inputs), RecordOptions{.watch = watch},
                                              /*listens=*/!listening_);
}

void GuardedProbe::listen_for_tape() {
  const record::Tape* tape = recorder_.tape();
  if (!tape || tape->gave_up()) return listening_.reset();
  if (listening_) return;
  auto session = ObserverSession::start(recorder_);
  if (session) listening_.emplace(std::move(session).value());
}

void GuardedProbe::end_update() {
  if (std::exchange(update_is_next_, false)) recorder_.updated();
}

void GuardedProbe::undo() {
  recorder_.cut_tape("a step was undone", /*every_step=*/false);
  gate_.clear_gradients();
  undo_.restore();
}

void GuardedProbe::unscale_on_record(double loss_scale) {
  if (loss_scale == 1) return;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& p : gate_.parameters())
    if (p.grad().defined()) gradients.push_back(p.grad());
  const at::NoGradGuard no_grad;
  if (!gradients.empty()) at::_foreach_mul_(gradients, 1 / loss_scale);
}

GateResult GuardedProbe::gate(const StepInputs& inputs, const at::Tensor& loss) {
  const bool taped = recorded_ && listening_;
  if (taped) unscale_on_record(inputs.loss_scale);
  const ObserverPause ours;
  if (recorded_) {
    if (!taped) recorded_->stop();
    // The gate multiplies gradients in place. If it does not have to, it reads their rows only when they are
    // needed.
    if (inputs.loss_scale != 1) recorded_->computed(loss, parameters_);
  }
  const GateResult seen = gate_.run(taped ? 1 : inputs.loss_scale, loss);
  if (taped) {
    recorder_.passed_gate({.step = inputs.step,
                           .rate = inputs.lr,
                           .loss = seen.loss,
                           .clip = inputs.clip_norm,
                           .grad_norm = seen.norm},
                          loss);
    update_is_next_ = true;
    recorded_->stop();
  }
  const bool needed = !std::isfinite(seen.loss) || !seen.finite() || options_.level == Level::watch;
  if (recorded_ && inputs.loss_scale == 1 && needed) recorded_->computed(loss, parameters_);
  return seen;
}

StepReport GuardedProbe::step(const StepInputs& inputs, const std::function<at::Tensor()>& compute) {
  Answer answer;
  gate_.clear_gradients();
  if (on()) safely("save", [&] { begin(inputs); });
  at::Tensor loss;
  try {
    loss = compute();
  } catch (...) {
    const ObserverPause ours;
    recorded_.reset();
    if (on()) safely("undo", [&] { undo(); });
    throw;  // thrown by the program itself: passed on unchanged
  }
  safely("gate", [&] {
    // ATen refused: the gradients are in an unknown scale and must not be applied.
    answer.gate = Gate::non_finite;
    const GateResult seen = gate(inputs, loss);
    const ObserverPause ours;
    answer.gate = judge_.judge(seen, {.loss_scale = inputs.loss_scale,
                                      .scaler_acts = seen.non_finite > 0 && inputs.loss_scale != 1,
                                      .min_loss_scale = options_.min_loss_scale});
    const bool overflowed = answer.gate == Gate::scale_overflow;
    if (overflowed) answer.told.push_back({Fact::scale_overflowed});
    if (answer.gate != Gate::ok) answer.told.push_back(what_is_bad(seen, /*norm_bad=*/false));
    if (answer.gate != Gate::ok) answer.told.front().step = inputs.step;
    if (overflowed) add(answer.told, judge_.calibration());
    answer.loss = seen.loss;
    answer.grad_norm = seen.norm;
    answer.grad_amax = seen.amax;
    answer.bad_gradients = seen.non_finite;
    if (recording()) history_.gated(answer.gate, seen, gate_);
    if (recording() && !check_.beginning_known())
      add(answer.told, check_.began(inputs.step, check_.bad_now(), answer.gate != Gate::ok));
    last_.step = inputs.step;
    last_.lr = inputs.lr;
    last_.loss_scale = inputs.loss_scale;
    last_amax_ = seen.amax;
  });
  const ObserverPause ours;
  loss.reset();  // this also frees the graph, before the step may run again
  answer.state_corrupt = corrupt_;
  if (recorded_ && on()) safely("buffers", [&] { look_at_buffers(inputs, answer); });
  agree_on_gate(inputs, answer);
  if (recorded_ && on()) safely("recording", [&] { look_for_hidden_damage(inputs, answer); });
  if (recorded_ && answer.gate == Gate::ok && answer.incident.empty() && on())
    safely("the last healthy step", [&] { recorded_->healthy(); });
  asked_again_ = false;
  if (answer.gate != Gate::ok && on()) safely("capture", [&] { failed(inputs, compute, answer); });
  if (answer.gate == Gate::non_finite && !asked_again_) all_run_again(false);
  recorded_.reset();
  if (log_ && !std::exchange(begun_, true)) add_text(answer.told, log_->earlier_text());
  add_text(answer.told, history_.complaint());
  if (record::Tape* tape = recorder_.tape()) add_text(answer.told, tape->complaint());
  if (!trouble_.empty() && !std::exchange(told_, true)) add(answer.told, trouble_);
  return answer.report();
}

void GuardedProbe::log(const std::string& name, double value) {
  if (recording()) safely("log", [&] { history_.log(name, value); });
}

Status GuardedProbe::finish(const std::string& outcome) {
  listening_.reset();  // what the program does now is not training
  if (std::exchange(finished_, true) || !log_) return {};
  Status status;
  safely("finish", [&] {
    status = history_.finish();
    const Status ended = log_->end("finished", outcome);
    if (status) status = ended;
  });
  if (status && !trouble_.empty()) return Error{ErrorCode::internal, text_of(trouble_), ""};
  return status;
}

}  // namespace nanquest::guard
