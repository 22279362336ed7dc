#include "trainer/model/layers.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "probe/nanquest.h"

namespace nanquest::trainer {

ParameterStore::ParameterStore(std::uint64_t seed, at::Device device)
    : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)), device_(device) {}

at::Tensor ParameterStore::keep(const std::string& name, const at::Tensor& value) {
  all_.emplace_back(name, value.to(device_).set_requires_grad(true));
  return all_.back().second;
}

at::Tensor ParameterStore::normal(const std::string& name, at::IntArrayRef sizes, double std) {
  return keep(name, at::empty(sizes, at::kFloat).normal_(0.0, std, generator_));
}

at::Tensor ParameterStore::constant(const std::string& name, at::IntArrayRef sizes, double value) {
  return keep(name, at::full(sizes, value, at::kFloat));
}

namespace {
std::string join(const std::string& parent, const std::string& name) {
  return parent.empty() ? name : parent + "." + name;
}
}  // namespace

Linear::Linear(ParameterStore& store, const std::string& parent, std::string name_, std::int64_t in,
               std::int64_t out, double std, bool with_bias)
    : name(std::move(name_)) {
  weight = store.normal(join(parent, name) + ".weight", {out, in}, std);
  if (with_bias) bias = store.constant(join(parent, name) + ".bias", {out}, 0.0);
}

at::Tensor Linear::operator()(const at::Tensor& x) const {
  const ModuleScope here(name, "Linear");
  return at::linear(x, weight, bias);
}

LayerNorm::LayerNorm(ParameterStore& store, const std::string& parent, std::string name_, std::int64_t width,
                     bool with_bias)
    : name(std::move(name_)) {
  weight = store.constant(join(parent, name) + ".weight", {width}, 1.0);
  if (with_bias) bias = store.constant(join(parent, name) + ".bias", {width}, 0.0);
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
  const ModuleScope here(name, "LayerNorm");
  return at::layer_norm(x, {weight.size(0)}, weight, bias, 1e-5);
}

Embedding::Embedding(ParameterStore& store, std::string name_, std::int64_t rows, std::int64_t width,
                     double std)
    : name(std::move(name_)) {
  weight = store.normal(name + ".weight", {rows, width}, std);
}

at::Tensor Embedding::operator()(const at::Tensor& indices) const {
  const ModuleScope here(name, "Embedding");
  return at::embedding(weight, indices);
}

}  // namespace nanquest::trainer
