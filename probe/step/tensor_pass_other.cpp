// The tensors that the raw loops can't read: CUDA and other devices, strided, sparse, fp8.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/step/tensor_pass.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
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
  const at::ScalarType wide = widest_float(values.device());
  const at::Tensor magnitude = at::where(at::isnan(values), 0, values.abs()).to(wide);
  const at::Tensor both =
      at::stack({finite.logical_not().sum().to(wide), magnitude.max()}).to(at::kCPU).to(at::kDouble);
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
  std::vector<at::Device> devices;
  const auto visit = [&](at::Device device) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end()) devices.push_back(device);
  };
  for (const auto& [index, tensor] : other_) visit(tensor->device());
  for (const auto& [number, value] : numbers_)
    if (!number.is_cpu()) visit(number.device());
  for (const at::Device device : devices) measure_device(device);
}

// The results of one device are copied to the host at once.
void TensorPass::measure_device(at::Device device) {
  std::vector<std::uint32_t> rows;
  std::vector<std::size_t> reads;
  std::vector<at::Tensor> values, numbers;
  const at::ScalarType wide = widest_float(device);
  for (const auto& [index, tensor] : other_) {
    if (tensor->device() != device) continue;
    try {
      at::Tensor readable = measurable(*tensor);
      if (readable.numel() == 0) continue;
      values.push_back(std::move(readable));
      rows.push_back(index);
    } catch (const c10::Error&) {  // a type that ATen can't widen: left out, as the header says
    }
  }
  if (!values.empty()) {
    numbers = at::_foreach_norm(values, 2, wide);
    for (at::Tensor& largest : at::_foreach_norm(values, std::numeric_limits<double>::infinity(), wide))
      numbers.push_back(std::move(largest));
  }
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i].first.device() != device || device.is_cpu()) continue;
    reads.push_back(i);
    numbers.push_back(numbers_[i].first.reshape({}).to(wide));
  }
  if (numbers.empty()) return;
  const at::Tensor host = at::stack(numbers).to(at::kCPU).to(at::kDouble);
  const double* found = host.const_data_ptr<double>();
  for (std::size_t k = 0; k < rows.size(); ++k) {
    LoopStats& s = stats_[rows[k]];
    s.sum_squares = found[k] * found[k];
    s.amax = found[rows.size() + k];
    if (!std::isfinite(s.sum_squares) || !std::isfinite(s.amax)) recount(values[k], s);
  }
  for (std::size_t k = 0; k < reads.size(); ++k) numbers_[reads[k]].second = found[2 * rows.size() + k];
}

}  // namespace nanquest
