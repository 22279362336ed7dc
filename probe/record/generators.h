/// States of random number generators, saved before an op draws from one.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <optional>

namespace nanquest::record {

/// The CPU generator's state without its packing as a tensor; of other generators the tensor, undefined where
/// the device doesn't tell (as while a graph is captured).
struct GeneratorState {
  bool on_cpu = true;
  at::mt19937_data_pod engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
  at::Tensor other;
};

/// Of the generator that an op was given, else of the default one of the device that it draws on: the one it
/// was told, or that of its first tensor.
GeneratorState state_of(c10::ArrayRef<const c10::IValue> inputs);

/// As Generator::get_state gives it.
at::Tensor packed(const GeneratorState& state);

}  // namespace nanquest::record
