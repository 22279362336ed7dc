/// Where to compute: names from the command line into a device, checked before anything is built.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// "cpu", "cuda" or "cuda:1". `unsupported` if this LibTorch or this machine can't.
Result<at::Device> find_device(const std::string& name);

/// Where to compute and in which formats, as a person gives it.
struct NumericsOptions {
  std::string device = "cpu";
  at::ScalarType amp = at::kFloat;  ///< of autocast; kFloat = none
  bool tf32 = false;                ///< for fp32 matmuls and convolutions on CUDA
  bool deterministic = false;
  int threads = 0;  ///< of the CPU; 0 = as LibTorch chooses
};

/// Declares them: device, threads and deterministic in the group Run, the formats in Precision.
void declare(SettingList& list, NumericsOptions& options);

/// The device that `options` names, if it is there and has the formats that they ask for; `usage` or
/// `unsupported` with the way out otherwise.
Result<at::Device> usable_device(const NumericsOptions& options);

/// Whether `device` of that major compute capability (0 on a CPU) has the format for autocast, and tf32 if
/// that is wanted. bf16 needs 8.0 on CUDA: LibTorch's own answer includes emulation, which is no use for
/// training.
Status check_formats(const NumericsOptions& options, at::Device device, int cuda_major);
/// Major compute capability of `device`, 0 if it is not a CUDA device or unknown.
int cuda_major(at::Device device);

/// "fp32", "bf16", "fp16", otherwise LibTorch's name.
std::string short_name(at::ScalarType dtype);

/// Sets the process-wide switches that change numbers: the seed of the default generators, deterministic
/// kernels, TF32, CPU threads.
void set_numerics(std::uint64_t seed, const NumericsOptions& options);

/// State of the default generators of CPU and (if it is CUDA) `device`, as uint8 tensors on the CPU.
NamedTensors rng_states(at::Device device);
void set_rng_states(at::Device device, const NamedTensors& states);

}  // namespace nanquest::trainer
