// The tensors that the raw loops can't read: CUDA and other devices, strided, sparse, fp8.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "probe/guard/tensor_pass.h"

namespace nanquest::guard {
namespace {

/// What ATen has norms for: strided real values of fp16 or wider. Sparse gradients count coalesced, as
/// optimizers use them.
at::Tensor measurable(const at::Tensor& tensor) {
  at::Tensor values = tensor.detach();
  if (values.is_sparse()) values = values.coalesce()._values();
  if (values.is_complex()) values = at::view_as_real(values.resolve_conj());
  const at::ScalarType type = values.scalar_type();
  if (type != at::kHalf && type != at::kBFloat16 && type != at::kFloat && type != at::kDouble)
    values = values.to(at::kFloat);
  return values;
}

/// Where something is non-finite: how many, and the largest that isn't NaN. Costs one more host read.
void recount(const at::Tensor& values, LoopStats& stats) {
  const at::Tensor finite = at::isfinite(values);
  const at::Tensor magnitude = at::where(at::isnan(values), 0, values.abs()).to(at::kDouble);
  const at::Tensor both = at::stack({finite.logical_not().sum().to(at::kDouble), magnitude.max()}).to(at::kCPU);
  const double* numbers = both.const_data_ptr<double>();
  stats.non_finite = static_cast<std::uint64_t>(numbers[0]);
  stats.amax = numbers[1];
}

}  // namespace

void TensorPass::run_other(double factor) {
  const at::NoGradGuard no_grad;
  if (factor != 1)
    for (const auto& [index, tensor] : other_) {
      at::Tensor written = tensor->is_sparse() ? tensor->_values() : tensor->detach();
      written.mul_(factor);
    }

  std::vector<bool> done(other_.size(), false);
  for (std::size_t first = 0; first < other_.size(); ++first) {
    if (done[first]) continue;
    std::vector<std::size_t> rows;  // of one device: their numbers cross to the host together
    std::vector<at::Tensor> values;
    for (std::size_t i = first; i < other_.size(); ++i) {
      if (done[i] || other_[i].second->device() != other_[first].second->device()) continue;
      done[i] = true;
      at::Tensor readable = measurable(*other_[i].second);
      if (readable.numel() == 0) continue;
      rows.push_back(i);
      values.push_back(std::move(readable));
    }
    if (values.empty()) continue;
    std::vector<at::Tensor> numbers = at::_foreach_norm(values, 2, at::kDouble);
    for (at::Tensor& largest : at::_foreach_norm(values, std::numeric_limits<double>::infinity(), at::kDouble))
      numbers.push_back(std::move(largest));
    const at::Tensor host = at::stack(numbers).to(at::kCPU);
    const double* found = host.const_data_ptr<double>();
    for (std::size_t k = 0; k < rows.size(); ++k) {
      LoopStats& s = stats_[other_[rows[k]].first];
      s.sum_squares = found[k] * found[k];
      s.amax = found[rows.size() + k];
      if (!std::isfinite(s.sum_squares) || !std::isfinite(s.amax)) recount(values[k], s);
    }
  }
}

}  // namespace nanquest::guard
