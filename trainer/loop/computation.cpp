#include "trainer/loop/computation.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

Computation::Computation(const LoopConfig& config, Group& ranks, RankWork& rank_work, Task& task,
                         Optimizer& optimizer)
    : config_(config),
      ranks_(ranks),
      rank_work_(rank_work),
      task_(task),
      optimizer_(optimizer),
      attention_(task.attention()),
      injector_(config.injections, ranks.rank()) {}

StepInputs Computation::begin(const Batch& batch, std::int64_t number) {
  StepInputs inputs;
  const Batch share = rank_work_.share_of(batch, config_.batch_size);
  for (const auto& [name, t] : share.tensors) inputs.batch.emplace_back(name, t.to(config_.device));
  inputs.sample_ids = share.ids;
  inputs.sample_texts = share.texts;
  rank_work_.seed(config_.seed, number);
  rank_work_.take_first(task_.buffers());
  return inputs;
}

at::Tensor Computation::run(const NamedTensors& rows, std::int64_t count, std::int64_t number,
                            at::ScalarType format, double scale) {
  const std::int64_t size = config_.batch_size / ranks_.size() / config_.micro_batches;
  at::Tensor sum;
  forget(attention_);
  for (std::int64_t i = 0; i < config_.micro_batches; ++i) {
    at::Tensor loss;
    set_micro_batch(static_cast<std::int32_t>(i));
    {
      const NvtxRange range("forward");
      const AutocastGuard autocast(config_.device.type(), format);
      NamedTensors part;
      for (const auto& [name, t] : rows) part.emplace_back(name, t.narrow(0, i * size, size));
      // One denominator for the whole batch: a mean of means would weigh short micro-batches too much.
      loss = task_.loss_sum(part, true) / static_cast<double>(count);
    }
    loss = injector_.into_loss(loss, number, format);
    {
      const NvtxRange range("backward");
      (scale == 1.0 ? loss : loss * scale).backward();
    }
    sum = sum.defined() ? sum + loss.detach() : loss.detach();
  }
  set_micro_batch(0);
  injector_.into_gradients(optimizer_.parameters(), number, format);
  return rank_work_.add_up(sum, optimizer_.parameters());
}

std::vector<Metric> Computation::evaluate(at::ScalarType format) {
  const NvtxRange range("evaluate");
  const ObserverPause measuring;
  const at::NoGradGuard no_grad;
  const AutocastGuard autocast(config_.device.type(), format);
  const std::int64_t samples = std::min(config_.eval_samples, task_.eval_samples());
  rank_work_.take_first(task_.buffers());
  const auto look = [&](std::int64_t at) {
    const Batch batch = task_.eval_batch(at, std::min(config_.batch_size, samples - at));
    NamedTensors on_device;
    for (const auto& [name, t] : batch.tensors) on_device.emplace_back(name, t.to(config_.device));
    return task_.tally(batch, on_device);
  };
  Tally sum;
  const std::int64_t stride = config_.batch_size * ranks_.size();
  for (std::int64_t at = config_.batch_size * ranks_.rank(); at < samples; at += stride)
    for (const auto& [name, value] : look(at)) sum[name] += value;
  return task_.metrics(rank_work_.add_up(std::move(sum), [&] { return look(0); }));
}

}  // namespace nanquest::trainer
