/// The kernels of device_ops.h for CUDA.
#pragma once

#include <ATen/core/Tensor.h>

namespace nanquest {

/// `look` on the current stream of the device where `found` lies.
void look_on_cuda(at::TensorList tensors, at::TensorList numbers, at::Tensor found, at::Tensor word);
/// Whether this process's GPU and driver can run it.
bool looks_on_cuda();

}  // namespace nanquest
