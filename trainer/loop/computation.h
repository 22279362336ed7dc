/// Computation: what the loop computes with its task: forward and backward of a batch, and the metrics of
/// held-out samples. Each rank computes its share; sums are those of all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/loop/config.h"
#include "trainer/loop/injector.h"
#include "trainer/loop/rank_work.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/attention_heads.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

/// One thread; every rank makes the same calls in the same order.
class Computation {
 public:
  /// All of them must outlive it.
  Computation(const LoopConfig& config, Group& ranks, RankWork& rank_work, Task& task, Optimizer& optimizer);

  /// This rank's rows of `batch`, the run's batch `number`, on the device, with ids and texts. Random
  /// generators and buffers are from here on those that this batch starts with.
  StepInputs begin(const Batch& batch, std::int64_t number);
  /// Forward and backward of every micro-batch of `rows` in `format`, the loss times `scale`. Returns the
  /// mean loss over `count` things; the gradients are in the weights. Throws what task and LibTorch throw.
  at::Tensor run(const NamedTensors& rows, std::int64_t count, std::int64_t number, at::ScalarType format,
                 double scale);
  /// Gives the attention layers the largest logits that any rank saw in the last `run`.
  void share_peaks() { rank_work_.share_peaks(attention_); }
  /// The task's metrics over the held-out samples, in `format`, without gradients.
  std::vector<Metric> evaluate(at::ScalarType format);

 private:
  const LoopConfig& config_;
  Group& ranks_;
  RankWork& rank_work_;
  Task& task_;
  Optimizer& optimizer_;
  std::vector<AttentionHeads> attention_;  ///< whose logits are looked at
  Injector injector_;
};

}  // namespace nanquest::trainer
