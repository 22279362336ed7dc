/// UndoLog: what must be restored so that a skipped step leaves no trace.
///
///     UndoLog undo;
///     undo.watch_device(at::kCPU);                 // its default random generator
///     undo.watch_buffer(running_mean);
///     undo.watch_host([&] { return [&, saved = scaler] { scaler = saved; }; });
///     undo.save();
///     … the step …
///     undo.restore();                              // as often as needed
///
/// Weights and moments need no saving: the gate runs before the optimizer. Gradients need none either: they
/// are undefined before a step. Buffers are always copied, also those that look constant, because batch_norm
/// and host code write them without changing the version counter; do not watch tensors that no step writes (a
/// causal mask, a table). Copies are allocated once. One thread.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace nanquest {

class UndoLog {
 public:
  /// Called before a step; returns a function that restores the state of that moment.
  using Save = std::function<std::function<void()>()>;

  /// Watches the default generator of `device`. Twice is the same as once.
  void watch_device(at::Device device);
  /// Watches a generator of the caller's own.
  void watch_generator(at::Generator generator);
  /// Watches a tensor that steps write in place. Twice is the same as once.
  void watch_buffer(const at::Tensor& buffer);
  /// Watches anything else.
  void watch_host(Save save);

  /// Saves the present state. Exceptions of a `Save` pass through.
  void save();
  /// Restores the state of the last `save`, any number of times. Does nothing without a `save`. Exceptions of
  /// what a `Save` returned pass through, after the rest was restored.
  void restore();
  /// Queues on their devices that the buffers are restored there if `word` is not 0 when a device gets to it
  /// (copy_if of device_ops.h). False, and nothing is done, if a step has written a buffer that lies on the
  /// host, or on a device that has no such kernel, or is not dense. Random generators and the rest stay as
  /// they are.
  bool restore_buffers_if(const at::Tensor& word);
  /// The buffers that are watched.
  std::vector<at::Tensor> buffers() const;

 private:
  struct Buffer {
    at::Tensor live, copy;
  };
  struct Random {
    at::Generator generator;
    at::Tensor state;  ///< bytes
  };

  std::vector<Buffer> buffers_;
  std::vector<Random> random_;
  std::vector<Save> hosts_;
  std::vector<std::function<void()>> host_restores_;
  bool saved_ = false;
};

}  // namespace nanquest
