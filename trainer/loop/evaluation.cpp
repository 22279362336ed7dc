// How good the weights are, on samples that were held out.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "trainer/loop/trainer.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {

std::vector<Metric> Trainer::evaluate() {
  const NvtxRange range("evaluate");
  const ObserverPause measuring;
  if (prefetcher_) prefetcher_->settle();
  const at::NoGradGuard no_grad;
  const AutocastGuard autocast(config_.device.type(), ladder_.run_format());
  const std::int64_t samples = std::min(config_.eval_samples, task_->eval_samples());
  take_first_buffers();
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
  return task_->metrics(add_up(std::move(sum), [&] { return look(0); }));
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

}  // namespace nanquest::trainer
