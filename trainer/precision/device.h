/// Where to compute: names from the command line into a device, checked before anything is built.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "probe/base/result.h"

namespace nanquest::trainer {

/// "cpu", "cuda" or "cuda:1". `unsupported` if this LibTorch or this machine can't.
Result<at::Device> find_device(const std::string& name);

/// "fp32", "bf16" or "fp16" into the dtype for autocast, checked on `device`: bf16 needs compute
/// capability 8.0 on CUDA (LibTorch's own answer includes emulation, which is no use for training).
Result<at::ScalarType> find_amp_dtype(const std::string& name, at::Device device);
/// The same for a device known by its major compute capability (0 on a CPU), and whether tf32, which CPUs
/// don't have, is wanted there.
Result<at::ScalarType> amp_dtype_on(const std::string& name, at::Device device, int cuda_major);
Status check_tf32(bool wanted, at::Device device, int cuda_major);
/// Major compute capability of `device`, 0 if it is not a CUDA device or unknown.
int cuda_major(at::Device device);

/// "fp32", "bf16", "fp16", otherwise LibTorch's name.
std::string short_name(at::ScalarType dtype);

/// Global switches that change numbers: seed of the default generators, deterministic kernels, TF32 for fp32
/// matmuls and convolutions on CUDA, CPU threads (0 = leave as is).
void set_numerics(std::uint64_t seed, bool deterministic, bool tf32, int threads);

/// State of the default generators of CPU and (if it is CUDA) `device`, as uint8 tensors on the CPU.
std::vector<std::pair<std::string, at::Tensor>> rng_states(at::Device device);
void set_rng_states(at::Device device, const std::vector<std::pair<std::string, at::Tensor>>& states);

}  // namespace nanquest::trainer
