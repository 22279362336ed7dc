// States and weights that are kept: in memory, on disk, and the best of them.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "probe/nanquest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/loop/plain_guard.h"
#include "trainer/loop/trainer.h"
#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

void Trainer::keep_state() {
  if (!all_finite(model_->parameters()) || !all_finite(optimizer_.state()) ||
      !all_finite(model_->buffers())) {
    (void)roll_back({}, "the state to be kept is not finite");
    return;
  }
  ring_.push_back(save());
  if (static_cast<std::int64_t>(ring_.size()) > config_.ring_depth) ring_.pop_front();
}

double Trainer::evaluate() {
  const NvtxRange range("evaluate");
  const at::NoGradGuard no_grad;
  const AutocastGuard autocast(config_.device.type(), amp_);
  const std::int64_t windows = std::min(config_.eval_windows, data_.eval_windows());
  double sum = 0;
  std::int64_t targets = 0;
  for (std::int64_t at = 0; at < windows; at += config_.batch_size) {
    const Batch batch = data_.eval_batch(at, std::min(config_.batch_size, windows - at));
    const at::Tensor logits = model_->forward(batch.tokens.to(config_.device), false);
    sum += next_token_loss(logits, batch.targets.to(config_.device)).item<double>();
    targets += batch.targets.numel();
  }
  return targets > 0 ? sum / static_cast<double>(targets) : std::numeric_limits<double>::quiet_NaN();
}

Status Trainer::evaluate_and_keep_best(StepEvent& event) {
  if (config_.eval_windows <= 0 || data_.eval_windows() == 0) return {};
  const double loss = evaluate();
  event.eval_loss = loss;
  if (probe_) probe_->log("eval_loss", loss);
  summary_.eval_loss = loss;
  if (!std::isfinite(loss)) {
    say("the held-out loss is not finite; these weights are not called best");
    return {};
  }
  if (counters_.best_eval != 0 && loss >= counters_.best_eval) return {};
  if (!all_finite(model_->parameters()) || !all_finite(model_->buffers())) {
    say("some weights are not finite; they are not called best");
    return {};
  }
  const std::string path = config_.run_dir + "/checkpoints/best.safetensors";
  NamedTensors weights = model_->parameters();
  for (const auto& b : model_->buffers()) weights.push_back(b);
  if (Status s = write_safetensors(
          path, weights,
          {{"step", std::to_string(counters_.optimizer_step)}, {"eval_loss", std::to_string(loss)}});
      !s)
    return s;
  counters_.best_eval = loss;
  summary_.best_weights = path;
  return {};
}

Status Trainer::write_state() {
  const NvtxRange range("checkpoint");
  const std::string path = config_.run_dir + "/checkpoints/state.safetensors";
  Status s = save_state(path, save());
  if (s) summary_.state_file = path;
  return s;
}

Status Trainer::finish() {
  const bool complete = counters_.optimizer_step >= config_.steps && !stopped_;
  if (complete) {
    StepEvent last{
        counters_.optimizer_step, config_.steps, 0, 0, scaler_.scale(), next_lr(), 0, Gate::ok, {}};
    if (Status s = evaluate_and_keep_best(last); !s) return s;
  }
  if (!all_finite(model_->parameters()) || !all_finite(model_->buffers())) {
    state_was_corrupt_ = true;
    if (ring_.empty() || !return_to(ring_.back())) {
      say("the weights are not finite and there is no older state; nothing is written");
    } else {
      say("the weights are not finite: what is written is the state before step " +
          std::to_string(counters_.optimizer_step));
    }
  }
  if (all_finite(model_->parameters()) && all_finite(model_->buffers())) {
    if (Status s = write_state(); !s) return s;
    const std::string path = config_.run_dir + "/checkpoints/final.safetensors";
    NamedTensors weights = model_->parameters();
    for (const auto& b : model_->buffers()) weights.push_back(b);
    if (Status s = write_safetensors(path, weights, {{"step", std::to_string(counters_.optimizer_step)}}); !s)
      return s;
    summary_.final_weights = path;
  }
  summary_.counters = counters_;
  summary_.best_eval_loss = counters_.best_eval;
  summary_.last_loss = recent_losses_.empty()
                           ? 0.0
                           : std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
                                 static_cast<double>(recent_losses_.size());
  summary_.final_lr = next_lr();
  summary_.final_scale = scaler_.scale();
  summary_.final_format = short_name(amp_);
  summary_.scale_history = scaler_.history();
  if (summary_.outcome.empty()) summary_.outcome = complete ? "finished" : "interrupted, resumable";
  if (stopped_) {
    summary_.exit = ExitCode::non_finite;
  } else if (state_was_corrupt_) {
    summary_.exit = ExitCode::state_corrupt;
  } else if (counters_.incidents > 0 || counters_.skipped > 0) {
    summary_.exit = ExitCode::finding;
  }
  return probe_ ? probe_->finish(summary_.outcome) : Status{};
}

}  // namespace nanquest::trainer
