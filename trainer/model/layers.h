/// The few layers of a GPT: plain structs of tensors, each with its path in the model.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <string>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Makes parameters and keeps them by name; the only place where weights are initialised.
class ParameterStore {
 public:
  ParameterStore(std::uint64_t seed, at::Device device);
  /// fp32 [sizes] drawn from N(0, std²) by the store's own generator, so that the same seed gives the same
  /// weights whatever other code draws.
  at::Tensor normal(const std::string& name, at::IntArrayRef sizes, double std);
  at::Tensor constant(const std::string& name, at::IntArrayRef sizes, double value);
  const NamedTensors& all() const { return all_; }

 private:
  at::Tensor keep(const std::string& name, const at::Tensor& value);

  at::Generator generator_;
  at::Device device_;
  NamedTensors all_;
};

/// y = x·Wᵀ + b with W [out, in].
struct Linear {
  at::Tensor weight, bias;  ///< bias may be undefined
  std::string name;         ///< last part of the path

  Linear() = default;
  Linear(ParameterStore& store, const std::string& parent, std::string name_, std::int64_t in,
         std::int64_t out, double std, bool with_bias = true);
  at::Tensor operator()(const at::Tensor& x) const;
};

/// Layer normalisation over the last dimension, eps 1e-5.
struct LayerNorm {
  at::Tensor weight, bias;  ///< bias may be undefined
  std::string name;

  LayerNorm() = default;
  LayerNorm(ParameterStore& store, const std::string& parent, std::string name_, std::int64_t width,
            bool with_bias = true);
  at::Tensor operator()(const at::Tensor& x) const;
};

/// Looks up rows of a table.
struct Embedding {
  at::Tensor weight;  ///< [rows, width]
  std::string name;

  Embedding() = default;
  Embedding(ParameterStore& store, std::string name_, std::int64_t rows, std::int64_t width, double std);
  at::Tensor operator()(const at::Tensor& indices) const;
};

}  // namespace nanquest::trainer
