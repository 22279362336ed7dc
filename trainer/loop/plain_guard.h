/// The bare minimum of a guard, for level off: same answers as the probe's, no history and no snapshots.
#pragma once

#include <functional>

#include "trainer/loop/config.h"

namespace nanquest::trainer {

/// Runs `compute` with cleared gradients, unscales them and looks whether loss and gradients are finite (norm
/// in fp64). If not, generators, buffers and gradients are put back as they were before.
StepReport plain_step(const NamedTensors& parameters, const NamedTensors& buffers, at::Device device,
                      double loss_scale, double min_loss_scale, const std::function<at::Tensor()>& compute);

/// Whether every floating-point element of every tensor is finite.
bool all_finite(const NamedTensors& tensors);

}  // namespace nanquest::trainer
