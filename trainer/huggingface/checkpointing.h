/// Activation checkpointing (arXiv 1604.06174): what a layer computes is computed again when backward needs
/// it, instead of kept. Inside this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace nanquest::trainer {

/// layer(x), with nothing kept but `x`. Backward computes it again with the generators' states and the
/// autocast of now, its ops inside the module that is running now. `weights` are all trained tensors that
/// `layer` reads.
at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& layer, const at::Tensor& x,
                        const std::vector<at::Tensor>& weights);

}  // namespace nanquest::trainer
