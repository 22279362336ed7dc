/// Activation checkpointing (arXiv 1604.06174): a layer's values are computed again when backward needs them,
/// instead of kept. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace nanquest::trainer {

/// layer(x), keeping only `x`. Backward computes it again with the current states of the generators and the
/// current autocast, its ops inside the current module. `weights` are all trained tensors that `layer` reads.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& layer, const at::Tensor& x,
                        const std::vector<at::Tensor>& weights);

}  // namespace nanquest::trainer
