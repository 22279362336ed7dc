/// The kernels of device_ops.h for CUDA.
#pragma once

#include <ATen/core/Tensor.h>

namespace nanquest {

/// `look` on the current stream of the device where `found` lies. Only where runs_cuda_kernels()
/// (cuda_module.h).
void look_on_cuda(at::TensorList tensors, at::TensorList numbers, at::Tensor found, at::Tensor word);
/// `copy_if` on the current stream of the device where `word` lies. Where the same.
void copy_if_on_cuda(at::TensorList to, at::TensorList from, at::Tensor word);

}  // namespace nanquest
