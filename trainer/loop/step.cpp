// One attempt at one batch, and what follows a good one.
#include <ATen/ATen.h>

#include <chrono>
#include <cmath>
#include <limits>

#include "probe/nanquest.h"
#include "trainer/loop/plain_guard.h"
#include "trainer/loop/trainer.h"
#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

bool Trainer::injecting(Injection::Kind kind, at::ScalarType format) const {
  for (const Injection& i : config_.injections)
    if (i.kind == kind && counters_.data_steps >= i.at && counters_.data_steps < i.at + i.count &&
        !(i.only_low_precision && format == at::kFloat))
      return true;
  return false;
}

void Trainer::inject_into_gradients(at::ScalarType format) {
  if (!injecting(Injection::Kind::inf_gradient, format)) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, p] : optimizer_.parameters()) {
    if (!p.grad().defined()) continue;
    p.grad().view({-1}).select(0, 0).fill_(std::numeric_limits<double>::infinity());
    return;
  }
}

at::Tensor Trainer::compute(const at::Tensor& tokens, const at::Tensor& targets, at::ScalarType format,
                            double scale) {
  // One denominator for the whole window: a mean of means would weigh short micro-batches too much.
  const auto total = static_cast<double>(targets.numel());
  const std::int64_t rows = tokens.size(0) / config_.micro_batches;
  at::Tensor sum;
  for (std::int64_t i = 0; i < config_.micro_batches; ++i) {
    at::Tensor loss;
    set_micro_batch(static_cast<std::int32_t>(i));
    {
      const NvtxRange range("forward");
      const AutocastGuard autocast(config_.device.type(), format);
      const at::Tensor logits = model_->forward(tokens.narrow(0, i * rows, rows), true);
      loss = next_token_loss(logits, targets.narrow(0, i * rows, rows)) / total;
    }
    if (injecting(Injection::Kind::nan_loss, format)) loss = loss * std::numeric_limits<double>::quiet_NaN();
    {
      const NvtxRange range("backward");
      (scale == 1.0 ? loss : loss * scale).backward();
    }
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  set_micro_batch(0);
  inject_into_gradients(format);
  return sum;
}

StepReport Trainer::attempt(const Batch& batch, at::ScalarType format) {
  const at::Tensor tokens = batch.tokens.to(config_.device), targets = batch.targets.to(config_.device);
  const double scale = format == at::kHalf ? scaler_.scale() : 1.0;
  const auto work = [&] { return compute(tokens, targets, format, scale); };
  if (!probe_)
    return plain_step(optimizer_.parameters(), model_->buffers(), config_.device, scale, config_.scaler.floor,
                      work);
  StepInputs inputs;
  inputs.step = counters_.optimizer_step;
  inputs.lr = next_lr();
  inputs.loss_scale = scale;
  inputs.batch = {{"tokens", tokens}, {"targets", targets}};
  inputs.sample_ids = batch.ids;
  inputs.sample_texts = batch.texts;
  return probe_->step(inputs, work);
}

void Trainer::tell_failed(const StepReport& report) const {
  if (!listener_.on_step) return;
  listener_.on_step({counters_.optimizer_step,
                     config_.steps,
                     report.loss,
                     report.grad_norm,
                     scaler_.scale(),
                     next_lr(),
                     0,
                     report.gate,
                     {}});
}

Result<Trainer::Next> Trainer::one_batch() {
  const NvtxRange range("step");
  const auto start = std::chrono::steady_clock::now();
  Batch batch;
  {
    const NvtxRange loading("data");
    batch = data_.train_batch(counters_.data_position, config_.batch_size);
  }
  for (;;) {
    const StepReport report = attempt(batch, amp_);
    if (report.gate == Gate::scale_overflow && scaler_.overflow(counters_.optimizer_step) &&
        !report.state_corrupt) {
      // The scale's own calibration: the step never happened, the same batch is tried at the new scale.
      tell_failed(report);
      continue;
    }
    if (report.ok()) {
      if (!report.summary.empty()) say(report.summary);
      const double lr = next_lr();
      const StepReport updated = apply(report);
      if (!updated.ok()) {
        const Next next = incident(updated, batch);
        if (next != Next::retry) return next;
        continue;
      }
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (Status s = after_step(report, lr, seconds); !s) return s.error();
      return Next::advance;
    }
    const Next next = incident(report, batch);
    if (next != Next::retry) return next;
  }
}

StepReport Trainer::apply(const StepReport& report) {
  const NvtxRange range("optimizer");
  const auto work = [&] {
    if (config_.grad_clip > 0 && report.grad_norm > 0) {
      const double factor = report.clip_coefficient(config_.grad_clip);
      if (factor < 1.0) optimizer_.scale_gradients(factor);
    }
    optimizer_.step(next_lr());
  };
  if (probe_) return probe_->update(counters_.optimizer_step, work);
  work();
  return {};
}

Status Trainer::after_step(const StepReport& report, double lr, double seconds) {
  const std::int64_t step = counters_.optimizer_step;
  const std::int64_t tokens = config_.batch_size * data_.context();
  const double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  if (step == 0)
    for (const std::string& name : optimizer_.without_gradient()) say("weight " + name + " gets no gradient");
  StepEvent event{step, config_.steps, report.loss, report.grad_norm, scaler_.scale(), lr,
                  rate, report.gate,   {}};
  ++counters_.optimizer_step;
  ++counters_.data_steps;
  counters_.data_position += config_.batch_size;
  counters_.consecutive_skips = 0;
  counters_.tokens += tokens;
  scaler_.good_step(step);
  if (step == 0) summary_.first_loss = report.loss;
  recent_losses_.push_back(report.loss);
  if (recent_losses_.size() > 20) recent_losses_.pop_front();

  const bool evaluate_now = config_.eval_every > 0 && counters_.optimizer_step % config_.eval_every == 0;
  if (evaluate_now && counters_.optimizer_step < config_.steps)
    if (Status s = evaluate_and_keep_best(event); !s) return s;
  if (probe_) probe_->log("tokens_per_second", rate);
  if (listener_.on_step) listener_.on_step(event);
  if (counters_.optimizer_step % config_.ring_every == 0) keep_state();
  if (config_.save_every > 0 && counters_.optimizer_step % config_.save_every == 0) return write_state();
  return {};
}

}  // namespace nanquest::trainer
