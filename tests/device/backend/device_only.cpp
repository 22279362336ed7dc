// Operators that no CPU has a kernel for, or not for such a mixture of formats, as the fused kernels of GPUs
// are. They are made of smaller ones.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <cmath>

#include "tests/device/backend/launch.h"

namespace nqdev {
namespace {

using at::Tensor;

Tensor masked_scale(const Tensor& self, const Tensor& mask, double scale) {
  return self.mul(mask.to(self.scalar_type())).mul(scale);
}

/// The CPU's kernel of the plain case, bit for bit; what no CPU mixes is cast before it.
Tensor launched(const char* name, std::vector<c10::IValue> stack) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  launch(op, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), &stack);
  return stack.at(0).toTensor();
}

Tensor softmax(const Tensor& self, std::int64_t dim, bool half_to_float) {
  return launched("aten::_softmax", {half_to_float ? self.to(at::kFloat) : self, dim, false});
}

Tensor softmax_backward(const Tensor& grad, const Tensor& out, std::int64_t dim, at::ScalarType input_type) {
  return launched("aten::_softmax_backward_data", {grad, out, dim, grad.scalar_type()}).to(input_type);
}

Tensor shares(const Tensor& q, const Tensor& k, const std::optional<Tensor>& bias, bool causal,
              double scale) {
  Tensor scores = at::matmul(q, k.transpose(-2, -1)).mul(scale);
  if (bias && bias->defined()) scores = scores.add(*bias);
  if (causal) {
    const Tensor hidden = at::ones({scores.size(-2), scores.size(-1)}, scores.options()).triu(1);
    scores = scores.sub(hidden.mul(1e4));
  }
  return softmax(scores, -1, false);
}

double scale_of(const Tensor& q, std::optional<double> scale) {
  return scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
}

/// The log-sum-exp has extra rows, and the seed of random numbers is returned on the CPU, as by the GPU's
/// kernel.
std::tuple<Tensor, Tensor, Tensor, Tensor> attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                     const std::optional<Tensor>& bias, bool, double dropout,
                                                     bool causal, std::optional<double> scale) {
  TORCH_CHECK(dropout == 0, "the test device attends without dropout");
  const Tensor out = at::matmul(shares(q, k, bias, causal, scale_of(q, scale)), v);
  const Tensor sums =
      at::zeros({q.size(0), q.size(1), (q.size(2) + 31) / 32 * 32}, q.options().dtype(at::kFloat));
  return {out, sums, at::zeros({}, at::kLong), at::zeros({}, at::kLong)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> attention_backward(const Tensor& grad, const Tensor& q,
                                                              const Tensor& k, const Tensor& v,
                                                              const Tensor& bias, const Tensor& out,
                                                              const Tensor&, const Tensor&, const Tensor&,
                                                              double, std::array<bool, 4>, bool causal,
                                                              std::optional<double> scale) {
  const double s = scale_of(q, scale);
  const Tensor p = shares(q, k, bias, causal, s);
  const Tensor scores = softmax_backward(at::matmul(grad, v.transpose(-2, -1)), p, -1, p.scalar_type());
  (void)out;
  return {at::matmul(scores, k).mul(s), at::matmul(scores.transpose(-2, -1), q).mul(s),
          at::matmul(p.transpose(-2, -1), grad), Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_masked_scale", masked_scale);
  m.impl("_softmax", softmax);
  m.impl("_softmax_backward_data", softmax_backward);
  m.impl("_scaled_dot_product_efficient_attention", attention);
  m.impl("_scaled_dot_product_efficient_attention_backward", attention_backward);
}

}  // namespace
}  // namespace nqdev

// What the probe asks of a device in one launch (probe/tensor/device_ops.h), as a GPU has it.
TORCH_LIBRARY_IMPL(nanquest_device, PrivateUse1, m) {
  m.impl("look", torch::CppFunction::makeFromBoxedFunction<&nqdev::launch>());
  m.impl("copy_if", torch::CppFunction::makeFromBoxedFunction<&nqdev::launch>());
}
