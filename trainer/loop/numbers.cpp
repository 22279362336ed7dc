// The run in numbers: how good the weights are on samples that were held out, and what stands in the metrics.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>

#include "trainer/loop/trainer.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::vector<Metric> Trainer::evaluate() {
  const NvtxRange range("evaluate");
  const ObserverPause measuring;
  batches_.settle();
  const at::NoGradGuard no_grad;
  const AutocastGuard autocast(config_.device.type(), ladder_.run_format());
  const std::int64_t samples = std::min(config_.eval_samples, task_->eval_samples());
  rank_work_.take_first(task_->buffers());
  const auto look = [&](std::int64_t at) {
    const Batch batch = task_->eval_batch(at, std::min(config_.batch_size, samples - at));
    NamedTensors on_device;
    for (const auto& [name, t] : batch.tensors) on_device.emplace_back(name, t.to(config_.device));
    return task_->tally(batch, on_device);
  };
  Tally sum;
  const std::int64_t stride = config_.batch_size * ranks_->size();
  for (std::int64_t at = config_.batch_size * ranks_->rank(); at < samples; at += stride)
    for (const auto& [name, value] : look(at)) sum[name] += value;
  return task_->metrics(rank_work_.add_up(std::move(sum), [&] { return look(0); }));
}

Status Trainer::evaluate_and_keep_best(StepEvent& event) {
  if (config_.eval_samples <= 0 || task_->eval_samples() == 0) return {};
  event.held_out = evaluate();
  for (const Metric& metric : event.held_out) probe_->log("eval_" + metric.name, metric.value);
  const Metric& decisive = event.held_out.front();
  summary_.eval_loss = decisive.value;
  summary_.held_out = event.held_out;
  if (!std::isfinite(decisive.value)) {
    say("the held-out " + decisive.name + " is not finite; these weights are not called best");
    return {};
  }
  if (counters_.best_eval != 0 && decisive.value >= counters_.best_eval) return {};
  if (!learned_.finite(false)) {
    say("some weights are not finite; they are not called best");
    return {};
  }
  if (Status s = write_weights("best", {{"eval_" + decisive.name, std::to_string(decisive.value)}},
                               summary_.best_weights);
      !s)
    return s;
  counters_.best_eval = decisive.value;
  return {};
}

Numbers Trainer::numbers_of(const StepEvent& event) const {
  const Counters& c = counters_;
  const auto known = [](double value) { return value > 0 ? value : kUnknown; };
  const double samples = static_cast<double>(task_->train_samples());
  Numbers numbers = {{"time", seconds_since_1970()},
                     {"epoch", static_cast<double>(c.data_position) / samples},
                     {"loss", event.loss},
                     {"lr", event.lr},
                     {"grad_norm", event.grad_norm},
                     {"loss_scale", ladder_.scaler().enabled() ? event.scale : kUnknown},
                     {"tokens", static_cast<double>(c.tokens)},
                     {"tokens_per_second", known(event.tokens_per_second)},
                     {"skipped", static_cast<double>(c.skipped)},
                     {"incidents", static_cast<double>(c.incidents)},
                     {"rollbacks", static_cast<double>(c.rollbacks)}};
  for (const auto& number : optimizer_->numbers()) numbers.push_back(number);
  for (const Metric& metric : event.held_out.empty() ? task_->metrics({}) : event.held_out)
    numbers.emplace_back("eval_" + metric.name, metric.value);
  return numbers;
}

void Trainer::write_metrics(const StepEvent& event) {
  if (metrics_.empty()) return;
  const bool last = event.step + 1 == config_.steps;
  if (event.step % config_.metrics_every != 0 && event.held_out.empty() && !last) return;
  metrics_.write(event.step, numbers_of(event));
}

void Trainer::rewrite_last_metrics() {
  if (last_event_.steps == 0 || last_event_.step + 1 != counters_.optimizer_step) return;
  metrics_.cut(last_event_.step);
  write_metrics(last_event_);
}

}  // namespace nanquest::trainer
