/// Room trainer/task: what is learned from which samples. All that the loop knows of models and data.
///
///     std::unique_ptr<Task> task = make_text_task(std::move(*model), std::move(*data));
///     Batch batch = task->train_batch(/*position=*/0, /*size=*/8);
///     at::Tensor loss = task->loss_sum(batch.tensors, /*training=*/true) / task->loss_count(batch);
///
/// `samples/stranger/own_task.cpp` is a task outside this program.
/// Never: prints, knows of optimizers, precision or steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/task/attention_heads.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Some samples.
struct Batch {
  NamedTensors tensors;            ///< on the CPU; dimension 0 of every one counts the samples
  std::vector<std::string> ids;    ///< one a sample: what a person finds it by
  std::vector<std::string> texts;  ///< one a sample, or none: what a person reads
};

/// Why a sample may not be used.
struct Fault {
  std::int64_t row = 0;  ///< of the batch
  std::string what;      ///< "targets holds 300 at 5, not one of 256"
};

/// Sums over samples, by name. Those of two sets of samples are added name by name.
using Tally = std::map<std::string, double>;

/// One measure of how good the weights are.
struct Metric {
  std::string name;
  double value = 0;  ///< NaN if no sample was looked at
};

/// A model, its data and its loss. One thread, but for `LoopConfig::prefetch`: then `train_batch` and
/// `faults` are called on a thread of their own while everything but them and `eval_batch` may run.
class Task {
 public:
  virtual ~Task() = default;

  /// Leaf tensors with requires_grad, owned by the task: what an optimizer moves.
  virtual NamedTensors parameters() const = 0;
  /// Tensors that a training step may change in place (running statistics), owned by the task.
  virtual NamedTensors buffers() const { return {}; }
  /// Attention layers whose logits `loss_sum` looks at while it trains; the loop makes it forget them before
  /// each attempt. None by default.
  virtual std::vector<AttentionHeads> attention() const { return {}; }

  /// Samples in one pass over the data; at least 1.
  virtual std::int64_t train_samples() const = 0;
  /// Samples [position, position + size) of an endless order in which passes follow one another: for the
  /// same position the same for ever, so that a run can be taken up anywhere.
  virtual Batch train_batch(std::int64_t position, std::int64_t size) const = 0;
  /// Samples that are held out; none by default.
  virtual std::int64_t eval_samples() const { return 0; }
  /// Held-out samples [first, first + size); `first + size` is at most `eval_samples()`.
  virtual Batch eval_batch(std::int64_t first, std::int64_t size) const;

  /// Gives the samples of two batches the same shape, by padding, so that one of them can stand in for one
  /// that may not be used. Nothing by default: all samples have one shape.
  virtual void even_out(Batch& /*a*/, Batch& /*b*/) const {}

  /// The samples of `batch` that no step should see: looked for before it is computed. By default those with
  /// a non-finite number (`finite_faults`).
  virtual std::vector<Fault> faults(const Batch& batch) const;
  /// How many things `loss_sum` adds up over `batch` (targets, without padding). Asked before the forward
  /// pass, so that all micro-batches of a step are divided by the same number.
  virtual std::int64_t loss_count(const Batch& batch) const = 0;
  /// Runs the model on the tensors of a batch, or on a range of their dimension 0, moved to the device of the
  /// weights, and adds up the losses: a scalar tensor. With `training` it has a history to call backward on.
  virtual at::Tensor loss_sum(const NamedTensors& tensors, bool training) = 0;

  /// What held-out samples add to the metrics, without gradients. By default their loss and its count.
  virtual Tally tally(const Batch& batch, const NamedTensors& on_device);
  /// The metrics of a whole tally; of an empty one the same names with NaN. The first decides which weights
  /// are the best, and lower is better. By default "loss", the mean.
  virtual std::vector<Metric> metrics(const Tally& tally) const;

  /// Lines for a person, "WHAT: …", about data and model.
  virtual std::vector<std::string> description() const { return {}; }
  /// All of the model that a checkpoint depends on, as text: words "KEY=VALUE", so that two can be compared.
  virtual std::string fingerprint() const { return ""; }
  /// All of the data that a position in its order depends on, as text.
  virtual std::string data_fingerprint() const { return ""; }
};

/// One for each sample that has a NaN or an infinity among the numbers of a tensor.
std::vector<Fault> finite_faults(const Batch& batch);

/// `tally[name]`, NaN if there is none.
double tallied(const Tally& tally, const std::string& name);

}  // namespace nanquest::trainer
