#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "probe/nanquest.h"
#include "trainer/huggingface/layers.h"

namespace nanquest::trainer {
at::Tensor weight_for(const at::Tensor& x, const at::Tensor& weight) {
  if (!weight.defined() || weight.scalar_type() == x.scalar_type() ||
      at::autocast::is_autocast_enabled(x.device().type()))
    return weight;
  return weight.to(x.scalar_type());
}

at::Tensor project(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::linear(x, weight_for(x, weight), weight_for(x, bias));
}

Projection::Projection(WeightMaker& make, Place where, std::int64_t in, std::int64_t out, bool with_bias,
                       bool transposed_weight)
    : place(std::move(where)), transposed(transposed_weight) {
  const std::string path = place.path();
  weight = make.weight(path + ".weight", transposed ? at::IntArrayRef{in, out} : at::IntArrayRef{out, in});
  if (with_bias) bias = make.weight(path + ".bias", {out});
  lora = make.adapter(path, in, out);
}

at::Tensor Projection::operator()(const at::Tensor& x, bool training) const {
  const ModuleScope here(place.name, place.type);
  at::Tensor y = project(x, transposed ? weight.t() : weight, bias);
  if (!lora) return y;
  at::Tensor share = training && lora->dropout > 0 ? at::dropout(x, lora->dropout, true) : x;
  {
    const ModuleScope part("lora_A", "Linear");
    share = project(share, lora->a, {});
  }
  const ModuleScope part("lora_B", "Linear");
  return y + project(share, lora->b, {}) * lora->scale;
}

at::Tensor Projection::merged() const {
  const at::NoGradGuard no_grad;
  at::Tensor whole = weight.detach().to(at::kFloat);
  if (!lora) return whole;
  const at::Tensor share = at::matmul(lora->b, lora->a) * lora->scale;
  return whole + (transposed ? share.t() : share);
}

}  // namespace nanquest::trainer
