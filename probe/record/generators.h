/// States of random number generators, saved before an op draws from one.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include <optional>

namespace nanquest::record {

/// The state of a CPU generator as bytes without the tensor around it. For other generators a tensor,
/// undefined where the device does not return one (as during graph capture).
struct GeneratorState {
  bool on_cpu = true;
  at::mt19937_data_pod engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
  at::Tensor other;
};

/// State of the generator that the op was given, or else of the default generator of the op's device: the
/// device argument, or the device of the first tensor.
GeneratorState state_of(c10::ArrayRef<const c10::IValue> inputs);

/// As Generator::get_state gives it.
at::Tensor packed(const GeneratorState& state);

}  // namespace nanquest::record
