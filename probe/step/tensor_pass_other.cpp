// The tensors that the raw loops can't read: CUDA and other devices, strided, sparse, fp8.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "probe/step/tensor_pass.h"
#include "probe/tensor/back_end.h"
#include "probe/tensor/device_ops.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// What ATen has norms for: strided real values of fp16 or wider. Sparse gradients count coalesced, as
/// optimizers use them.
at::Tensor measurable(const at::Tensor& tensor) {
  at::Tensor values = tensor.detach();
  if (values.is_sparse()) values = values.coalesce()._values();
  values = as_reals(values);
  const at::ScalarType type = values.scalar_type();
  if (type != at::kHalf && type != at::kBFloat16 && type != at::kFloat && type != at::kDouble)
    values = values.to(at::kFloat);
  return values;
}

/// Where something is non-finite: how many, and the largest that isn't NaN. Costs one more host read.
void recount_one(const at::Tensor& values, LoopStats& stats) {
  const at::Tensor finite = at::isfinite(values);
  const at::ScalarType wide = widest_float(values.device());
  const at::Tensor magnitude = at::where(at::isnan(values), 0, values.abs()).to(wide);
  const at::Tensor both =
      at::stack({finite.logical_not().sum().to(wide), magnitude.max()}).to(at::kCPU).to(at::kDouble);
  const double* numbers = both.const_data_ptr<double>();
  stats.non_finite = static_cast<std::uint64_t>(numbers[0]);
  stats.amax = numbers[1];
}

/// What a kernel reads by address: dense memory.
at::Tensor dense(const at::Tensor& values) {
  return values.is_non_overlapping_and_dense() && !values.is_neg() ? values
                                                                   : values.resolve_neg().contiguous();
}

}  // namespace

void TensorPass::start_other(double factor) {
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
  for (const Number& number : numbers_)
    if (!number.tensor.is_cpu()) visit(number.tensor.device());
  for (const at::Device device : devices) start_device(device);
}

// The results of one device are copied to the host at once.
void TensorPass::start_device(at::Device device) {
  OnDevice& here = on_device_.emplace_back();
  std::vector<at::Tensor> values, numbers;
  here.counts = !device.is_cpu() && looks_at_once(device.type());
  for (const auto& [index, tensor] : other_) {
    if (tensor->device() != device) continue;
    try {
      at::Tensor readable = measurable(*tensor);
      if (readable.numel() == 0) continue;
      values.push_back(here.counts ? dense(readable) : std::move(readable));
      here.rows.push_back(index);
    } catch (const c10::Error&) {  // a type that ATen can't widen: left out, as the header says
    }
  }
  for (const bool in_word : {true, false})
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (numbers_[i].in_word == in_word && numbers_[i].tensor.device() == device && !device.is_cpu()) {
        here.reads.push_back(i);
        here.beside += in_word ? 0 : 1;
        numbers.push_back(numbers_[i].tensor.reshape({}));
      }
  if (values.empty() && numbers.empty()) return on_device_.pop_back();
  if (here.counts) {
    const auto options = at::TensorOptions().device(device);
    here.found = at::empty({look_count(values.size(), numbers.size())}, options.dtype(at::kDouble));
    here.word = at::empty({}, options.dtype(at::kFloat));
    const auto beside = static_cast<std::int64_t>(here.beside), judged = here.found.numel() - beside;
    const std::vector<at::Tensor> others(numbers.end() - beside, numbers.end());
    numbers.resize(numbers.size() - here.beside);
    look(values, numbers, here.found.narrow(0, 0, judged), here.word);
    for (std::int64_t i = 0; i < beside; ++i)
      here.found.select(0, judged + i).copy_(others[static_cast<std::size_t>(i)]);
    return send(here.found, here);
  }
  const at::ScalarType wide = widest_float(device);
  std::vector<at::Tensor> all;
  if (!values.empty()) {
    all = at::_foreach_norm(values, 2, wide);
    for (at::Tensor& largest : at::_foreach_norm(values, std::numeric_limits<double>::infinity(), wide))
      all.push_back(std::move(largest));
  }
  for (const at::Tensor& number : numbers) all.push_back(number.to(wide));
  here.found = at::stack(all);
  send(here.found, here);
}

at::Tensor TensorPass::word() const {
  const at::NoGradGuard no_grad;
  const bool here = std::any_of(numbers_.begin(), numbers_.end(), [](const Number& number) {
    return number.in_word && number.tensor.is_cpu() && !std::isfinite(number.value);
  });
  if (on_device_.empty() || !chunks_.empty() || here) return {};
  at::Tensor all;
  for (const OnDevice& one : on_device_) {
    if (one.found.is_cpu()) return {};
    const std::int64_t judged = one.found.numel() - static_cast<std::int64_t>(one.beside);
    const at::Tensor word =
        one.word.defined() ? one.word
                           : at::isfinite(one.found.narrow(0, 0, judged)).all().logical_not().to(at::kFloat);
    all = all.defined() ? at::maximum(all, word.to(all.device(), /*non_blocking=*/true)) : word;
  }
  return all;
}

void TensorPass::send(const at::Tensor& found, OnDevice& to) {
  if (!found.is_cpu()) to.host = pinned_memory(found.sizes(), found.scalar_type());
  if (!to.host.defined()) {
    to.host = found.to(at::kCPU);
    return;
  }
  to.host.copy_(found, /*non_blocking=*/true);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(found.device().type()).getStream(found.device());
  to.event.emplace(found.device().type()).record(stream);
}

bool TensorPass::pending() const {
  return std::any_of(on_device_.begin(), on_device_.end(),
                     [](const OnDevice& each) { return each.event.has_value(); });
}

bool TensorPass::ready() const {
  return std::all_of(on_device_.begin(), on_device_.end(),
                     [](const OnDevice& each) { return !each.event || each.event->query(); });
}

void TensorPass::finish() {
  for (const OnDevice& each : on_device_) {
    if (each.event && !each.event->query()) each.event->synchronize();
    take(each);
  }
  on_device_.clear();
}

void TensorPass::take(const OnDevice& from) {
  const at::Tensor host = from.host.to(at::kDouble);
  const double* found = host.const_data_ptr<double>();
  const std::size_t count = from.rows.size();
  for (std::size_t k = 0; k < count; ++k) {
    LoopStats& s = stats_[from.rows[k]];
    s.sum_squares = from.counts ? found[k] : found[k] * found[k];
    s.amax = found[count + k];
    if (from.counts) {
      s.non_finite = static_cast<std::uint64_t>(found[2 * count + k]);
    } else if (!std::isfinite(s.sum_squares) || !std::isfinite(s.amax)) {
      // Of finite elements only the norm can leave the format.
      s.non_finite = std::isinf(s.sum_squares) && std::isfinite(s.amax) ? 0 : 1;
      uncounted_.push_back(from.rows[k]);
    }
  }
  const double* const numbers = found + (from.counts ? 3 : 2) * count;
  for (std::size_t k = 0; k < from.reads.size(); ++k) numbers_[from.reads[k]].value = numbers[k];
}

void TensorPass::recount() {
  const at::NoGradGuard no_grad;
  for (const std::uint32_t row : std::exchange(uncounted_, {})) {
    const auto tensor =
        std::find_if(other_.begin(), other_.end(), [&](const auto& each) { return each.first == row; });
    recount_one(measurable(*tensor->second), stats_[row]);
  }
}

}  // namespace nanquest
