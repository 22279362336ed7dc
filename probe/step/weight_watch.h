/// WeightWatch: what an optimizer step did to the weights, cheaply.
///
/// Weight norm, amax and finiteness come from one read of all weights. How far they moved comes from a fixed
/// sample of at most 2048 elements per parameter (eight blocks, evenly spread), saved before the update and
/// compared after it: all of a small tensor, about 2 % standard error for a large one, and no second copy of
/// the model. Small models on the CPU are measured in every step, others every `every` steps. One thread;
/// only reads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "probe/step/tensor_pass.h"

namespace nanquest {

/// Whether a tensor of this size is looked at in every step: only small ones in the CPU's memory. For a
/// device's memory the host would have to wait.
constexpr bool worth_every_step(std::int64_t elements, bool on_cpu) {
  return on_cpu && elements <= (std::int64_t{1} << 20);
}

class WeightWatch {
 public:
  /// `every` = steps between measurements of large models; 0 = never measure any.
  explicit WeightWatch(int every) : every_(every) {}

  void watch(const at::Tensor& parameter);
  /// For callers that must not keep parameters alive: from now on parameter `index` is this one, of the size
  /// that it was watched with; an undefined one is not measured.
  void bind(std::size_t index, const at::Tensor& parameter);
  /// Whether parameter `index` was measured last time.
  bool measured(std::size_t index) const {
    return index < parameters_.size() && parameters_[index].defined();
  }

  /// True if `step` is one to measure.
  bool due(std::int64_t step) const;
  /// Saves the sample. Call before the optimizer.
  void before_update();
  /// Measures. Call after the optimizer, once for each `before_update`.
  void after_update();

  /// The result for parameter `index`, after `after_update`.
  const LoopStats& stats(std::size_t index) const { return pass_.stats(index); }
  /// ‖Δw‖² and ‖w before‖² of parameter `index`, extrapolated from its sample.
  double moved_squares(std::size_t index) const { return samples_[index].moved; }
  double before_squares(std::size_t index) const { return samples_[index].before; }
  /// Non-finite elements in all weights.
  std::uint64_t non_finite() const;

 private:
  struct Sample {
    std::size_t offset = 0, count = 0;  ///< range of the sampled values
    double moved = 0, before = 0;
  };

  void fetch(std::vector<double>& to) const;
  at::Tensor sample(std::size_t index) const;

  int every_;
  std::int64_t elements_ = 0;
  std::vector<at::Tensor> parameters_;
  std::vector<Sample> samples_;
  std::vector<double> before_, after_;
  TensorPass pass_;
};

}  // namespace nanquest
