/// Where to compute: turns names from the command line into a device, checked before anything is built.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// "cpu", "cuda" or "cuda:1". `unsupported` if this LibTorch or this machine does not have it.
Result<at::Device> find_device(const std::string& name);

/// Device and formats as a person gives them.
struct NumericsOptions {
  std::string device = "cpu";
  /// Format of autocast; kFloat = none, nothing = the device's best.
  std::optional<at::ScalarType> amp = std::nullopt;
  bool tf32_matmul = false, tf32_conv = false;  ///< fp32 matmuls and convolutions on CUDA, rounded to tf32
  bool strict = false;                          ///< a format that the device lacks is an error
  bool deterministic = false;
  int threads = 0;  ///< of the CPU; 0 = as LibTorch chooses
};

/// Declares them: device, threads and deterministic in the group Run, the formats in Precision.
void declare(SettingList& list, NumericsOptions& options);

/// Sets in `options` the formats that are really used on `device` with that major compute capability (0 on a
/// CPU): for an unset `amp` bf16 from 8.0 on, else fp16, and fp32 on a CPU; fp32 instead of formats that the
/// device lacks. Returns a line for each such choice. With `strict` the first missing format is
/// `unsupported`. bf16 and tf32 need 8.0: LibTorch's own answer includes emulation, which is useless for
/// training.
Result<std::vector<std::string>> settle_formats(NumericsOptions& options, at::Device device, int cuda_major);
/// Major compute capability of `device`, 0 if it is not a CUDA device or unknown.
int cuda_major(at::Device device);

/// "fp32", "bf16", "fp16", otherwise LibTorch's name.
std::string short_name(at::ScalarType dtype);

/// Sets the process-wide switches that change numbers: the seed of the default generators, deterministic
/// kernels, TF32 for each of its two uses, CPU threads.
void set_numerics(std::uint64_t seed, const NumericsOptions& options);

/// State of the default generators of CPU and (if it is CUDA) `device`, as uint8 tensors on the CPU.
NamedTensors rng_states(at::Device device);
void set_rng_states(at::Device device, const NamedTensors& states);
/// Seeds both generators.
void seed_generators(at::Device device, std::uint64_t seed);

}  // namespace nanquest::trainer
