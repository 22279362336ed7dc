// One attempt at one batch, and what follows a good one.
#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "trainer/loop/trainer.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {
namespace {

/// What `least` gives where no rank has anything to say.
constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::max();

}  // namespace

at::Tensor Trainer::compute(const NamedTensors& tensors, std::int64_t count, at::ScalarType format,
                            double scale) {
  const std::int64_t rows = config_.batch_size / ranks_->size() / config_.micro_batches;
  at::Tensor sum;
  forget(attention_);
  for (std::int64_t i = 0; i < config_.micro_batches; ++i) {
    at::Tensor loss;
    set_micro_batch(static_cast<std::int32_t>(i));
    {
      const NvtxRange range("forward");
      const AutocastGuard autocast(config_.device.type(), format);
      NamedTensors part;
      for (const auto& [name, t] : tensors) part.emplace_back(name, t.narrow(0, i * rows, rows));
      // One denominator for the whole batch: a mean of means would weigh short micro-batches too much.
      loss = task_->loss_sum(part, true) / static_cast<double>(count);
    }
    loss = injector_.into_loss(loss, counters_.data_steps, format);
    {
      const NvtxRange range("backward");
      (scale == 1.0 ? loss : loss * scale).backward();
    }
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  set_micro_batch(0);
  injector_.into_gradients(optimizer_->parameters(), counters_.data_steps, format);
  return rank_work_.add_up(sum, optimizer_->parameters());
}

StepReport Trainer::attempt(const Batch& batch, at::ScalarType format) {
  StepInputs inputs;
  const Batch share = rank_work_.share_of(batch, config_.batch_size);
  for (const auto& [name, t] : share.tensors) inputs.batch.emplace_back(name, t.to(config_.device));
  inputs.step = counters_.optimizer_step;
  inputs.lr = next_lr();
  inputs.loss_scale = ladder_.loss_scale();
  inputs.clip_norm = config_.grad_clip;
  inputs.sample_ids = share.ids;
  inputs.sample_texts = share.texts;
  const std::int64_t count = task_->loss_count(batch);  // of all ranks: their losses are added up
  rank_work_.seed(config_.seed, counters_.data_steps);
  rank_work_.take_first(task_->buffers());
  return probe_->step(inputs, [&] { return compute(inputs.batch, count, format, inputs.loss_scale); });
}

StepEvent Trainer::event_of(const StepReport& report) const {
  StepEvent event;
  event.step = counters_.optimizer_step;
  event.steps = config_.steps;
  event.loss = report.loss;
  event.grad_norm = report.grad_norm;
  event.scale = ladder_.scaler().scale();
  event.lr = next_lr();
  event.gate = report.gate;
  if (!report.ok()) event.what = report.summary;
  return event;
}

Status Trainer::all_ready(const Status& batch) {
  if (ranks_->alone()) return batch;
  // One number for both questions: 0 if a rank has no batch, else what a rank that was asked to stop was
  // asked with.
  const int asked = stop_code_;
  const std::int64_t said = ranks_->least(!batch ? 0 : asked != 0 ? asked : kNothing);
  if (said == 0) {
    together_ = true;
    return agreed(*ranks_, batch);
  }
  stop_agreed_ = said != kNothing;
  if (stop_agreed_) stop_code_ = static_cast<int>(said);
  return {};
}

Result<Trainer::Next> Trainer::one_batch() {
  const NvtxRange range("step");
  const auto start = std::chrono::steady_clock::now();
  Result<Batch> batch = [&] {
    const NvtxRange loading("data");
    return batches_.next();
  }();
  if (Status s = all_ready(batch ? Status() : batch.error()); !s) {
    save_before_ending();
    return s.error();
  }
  if (stop_agreed_) return Next::advance;
  for (;;) {
    const StepReport report = attempt(*batch, ladder_.format());
    Ladder::Answer answer = ladder_.after(report);
    StepEvent event = event_of(report);
    if (answer.next == Ladder::Next::update) {
      if (!report.summary.empty()) say_own(report.summary);
      const StepReport updated = apply(report);
      answer = ladder_.updated(updated);
      if (updated.ok()) {
        consistent_ = true;
        event.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (Status s = after_step(event, *batch); !s) return s.error();
        return follow(ladder_.keep(), nullptr);
      }
    }
    if (answer.next != Ladder::Next::again) return follow(answer, &*batch);
    if (answer.why.empty()) tell_failed(report);
  }
}

StepReport Trainer::apply(const StepReport& report) {
  const NvtxRange range("optimizer");
  const bool may_clip = config_.grad_clip > 0 && report.grad_norm > 0;
  const double factor = may_clip ? report.clip_coefficient(config_.grad_clip) : 1.0;
  std::optional<UpdateWatch> watch;
  {
    const ObserverPause measuring;
    if (counters_.optimizer_step == 0)
      for (const std::string& remark : gradient_remarks(optimizer_->parameters(), ladder_.format()))
        say(remark);
    if (at_full_rate()) watch.emplace(optimizer_->parameters());
  }
  const auto work = [&] {
    if (factor < 1.0) optimizer_->scale_gradients(factor);
    optimizer_->step(next_lr());
  };
  rank_work_.share_peaks(attention_);
  consistent_ = false;
  StepReport report_of_update = probe_->update(counters_.optimizer_step, work);
  // An update that spoiled something was undone, or left it spoiled.
  if (!report_of_update.ok()) {
    consistent_ = !report_of_update.state_corrupt;
    return report_of_update;
  }
  const auto tell = [&](const std::optional<std::string>& remark) {
    if (remark) say(*remark);
  };
  const ObserverPause measuring;
  if (watch) tell(watch->look(optimizer_->parameters()));
  if (config_.grad_clip > 0) tell(clip_watch_.add(factor < 1.0));
  return report_of_update;
}

void Trainer::pass_batch() {
  ++counters_.data_steps;
  counters_.data_position += batches_.span();
}

Status Trainer::after_step(StepEvent event, const Batch& batch) {
  const ObserverPause measuring;
  const std::int64_t step = event.step, tokens = task_->loss_count(batch);
  event.tokens_per_second = event.seconds > 0 ? static_cast<double>(tokens) / event.seconds : 0;
  pass_batch();
  counters_.tokens += tokens;
  if (step == 0) summary_.first_loss = event.loss;
  recent_losses_.push_back(event.loss);
  if (recent_losses_.size() > 20) recent_losses_.pop_front();
  if (step == 0)
    if (const std::vector<std::string> names = optimizer_->without_gradient(); !names.empty())
      say(without_gradient_remark(names));

  const bool evaluate_now = config_.eval_every > 0 && counters_.optimizer_step % config_.eval_every == 0;
  if (evaluate_now && counters_.optimizer_step < config_.steps)
    if (Status s = evaluate_and_keep_best(event); !s) return s;
  for (const auto& [name, value] : optimizer_->numbers()) probe_->log(name, value);
  probe_->log("tokens_per_second", event.tokens_per_second);
  remaining_.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
  event.seconds_left = remaining_.left(config_.steps - counters_.optimizer_step);
  write_metrics(event);
  last_event_ = event;
  if (listener_.on_step) listener_.on_step(event);
  return checkpoints_.is_time(counters_.optimizer_step) ? write_state() : Status();
}

}  // namespace nanquest::trainer
