/// Tensors by name: the form in which models, optimizers, batches and checkpoints exchange them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace nanquest::trainer {

/// Tensors by dotted name, in the order in which their owner made them. Handles, not copies.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Whether every floating-point element of every tensor is finite.
bool all_finite(const NamedTensors& tensors);

}  // namespace nanquest::trainer
