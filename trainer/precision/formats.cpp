#include "trainer/precision/formats.h"

#include <ATen/ATen.h>

#include <map>

#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {
namespace {

/// "fp32", or "fp32 (3), fp16 (1)" if they differ.
std::string formats_of(const NamedTensors& tensors) {
  std::map<std::string, int> counts;
  for (const auto& [name, t] : tensors)
    if (t.is_floating_point()) ++counts[short_name(t.scalar_type())];
  if (counts.size() == 1) return counts.begin()->first;
  std::string text;
  for (const auto& [format, count] : counts)
    text += (text.empty() ? "" : ", ") + format + " (" + std::to_string(count) + ")";
  return text;
}

/// Whether the sum of 4096 ones, half of them too small to change a running sum in `dtype`, keeps them: shows
/// in which format a reduction over `dtype` inputs accumulates.
bool sums_in_wider_format(at::Device device, at::ScalarType dtype) {
  const at::Tensor big =
      at::full({1}, dtype == at::kHalf ? 2048.0 : 256.0, at::TensorOptions(device).dtype(dtype));
  const at::Tensor small = at::full({4096}, 0.25, big.options());
  // In the narrow format each 0.25 is below half a unit of the running sum and would be lost.
  const at::Tensor one_row = at::cat({big, small}).reshape({1, -1});
  const double sum = at::matmul(one_row, at::ones({one_row.size(1), 1}, big.options())).item<double>();
  return sum > big.item<double>() * 1.2;
}

}  // namespace

std::vector<FormatFact> formats_in_use(const NamedTensors& parameters, const NamedTensors& optimizer_state,
                                       at::Device device, at::ScalarType amp) {
  const std::string wanted = short_name(amp);
  const at::TensorOptions fp32 = at::TensorOptions(device).dtype(at::kFloat);
  const at::Tensor weight = at::ones({16, 16}, fp32).set_requires_grad(true);
  at::Tensor product, norm, weights, total, loss;
  {
    const AutocastGuard guard(device.type(), amp);
    product = at::linear(at::ones({4, 16}, fp32), weight);
    norm = at::layer_norm(product, {16}, at::ones({16}, fp32), at::zeros({16}, fp32));
    weights = product.softmax(-1);
    total = product.sum();
    loss = at::cross_entropy_loss(product.to(at::kFloat), at::zeros({4}, fp32.dtype(at::kLong)));
  }
  loss.backward();
  const bool autocast = amp != at::kFloat;
  const auto why = [&](const at::Tensor& t, const char* lowered, const char* kept) {
    if (!autocast) return std::string("no autocast");
    return std::string(t.scalar_type() == amp ? lowered : kept);
  };
  std::vector<FormatFact> facts;
  facts.push_back(
      {"weights", formats_of(parameters), "masters: an update smaller than half a unit is not lost"});
  facts.push_back({"optimizer moments", formats_of(optimizer_state), "same format as the weights"});
  facts.push_back({"weight gradients", short_name(weight.grad().scalar_type()),
                   "autograd casts back to the weight's format"});
  std::string multiply = short_name(product.scalar_type());
  if (!autocast && device.is_cuda() && at::globalContext().allowTF32CuBLAS())
    multiply = "fp32, multiplied as tf32";
  facts.push_back({"activations of linear layers and matmuls", multiply,
                   why(product, "autocast casts their inputs down", "autocast keeps them")});
  facts.push_back({"layer norm output", short_name(norm.scalar_type()),
                   why(norm, "this device's autocast leaves layer norm in the format of its input",
                       "this device's autocast lifts layer norm")});
  facts.push_back({"softmax output", short_name(weights.scalar_type()),
                   why(weights, "this device's autocast leaves softmax in the format of its input",
                       "this device's autocast lifts softmax")});
  facts.push_back({"sums", short_name(total.scalar_type()),
                   why(total, "this device's autocast leaves sums in the format of their input",
                       "this device's autocast lifts sums")});
  if (autocast)
    facts.push_back({"accumulation inside a " + wanted + " matmul",
                     sums_in_wider_format(device, amp) ? "wider than " + wanted : wanted,
                     "found by adding 4096 terms that a " + wanted + " running sum would lose"});
  facts.push_back({"loss", short_name(loss.scalar_type()), "logits are lifted before the cross-entropy"});
  facts.push_back({"gradient norm", "fp64", "a square of 1e20 leaves fp32"});
  if (device.is_cuda())
    facts.push_back({"tf32",
                     std::string("matmul ") + (at::globalContext().allowTF32CuBLAS() ? "on" : "off") +
                         ", convolution " + (at::globalContext().allowTF32CuDNN() ? "on" : "off"),
                     "for what stays fp32"});
  return facts;
}

}  // namespace nanquest::trainer
