/// shares: how much the gradients of each rank count in those of a step on one rank.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nanquest::diff {

/// Collects the gradients of weights, before any sum over ranks, and fits one number for each rank by least
/// squares: gradient = sum of share * gradient of the rank.
class Shares {
 public:
  explicit Shares(std::size_t ranks) : products_(ranks, std::vector<double>(ranks)), with_one_(ranks) {}

  /// The gradient of a weight, and those of the ranks for their part of the batch. Other shapes: left out.
  void add(const at::Tensor& one, const std::vector<at::Tensor>& ranks);

  struct Fitted {
    std::vector<double> of_rank;  ///< empty if it can't be told
    double apart = 0;             ///< what is left, relative to the gradients
  };
  Fitted fit() const;
  std::int64_t weights() const { return weights_; }

 private:
  std::vector<std::vector<double>> products_;  ///< of two ranks' gradients
  std::vector<double> with_one_;
  double squares_ = 0;
  std::int64_t weights_ = 0;
};

}  // namespace nanquest::diff
