#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "probe/record/record.h"

namespace nanquest {
namespace {

/// Environment variables that change which kernels run or how they round.
constexpr const char* kVariables[] = {"OMP_NUM_THREADS",
                                      "MKL_NUM_THREADS",
                                      "ATEN_CPU_CAPABILITY",
                                      "ONEDNN_MAX_CPU_ISA",
                                      "MKL_CBWR",
                                      "MKL_ENABLE_INSTRUCTIONS",
                                      "DNNL_MAX_CPU_ISA",
                                      "CUBLAS_WORKSPACE_CONFIG",
                                      "NVIDIA_TF32_OVERRIDE",
                                      "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
                                      "CUDA_VISIBLE_DEVICES",
                                      "PYTORCH_CUDA_ALLOC_CONF",
                                      "OPENBLAS_CORETYPE"};

std::string yes_no(bool value) {
  return value ? "true" : "false";
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown";
}

}  // namespace

std::map<std::string, std::string> capture_environment() {
  std::map<std::string, std::string> e;
  e["torch_version"] = TORCH_VERSION;
  e["cpu_capability"] = at::get_cpu_capability();
  static const std::string model = cpu_model();
  e["cpu_model"] = model;
  e["num_threads"] = std::to_string(at::get_num_threads());
  const auto& context = at::globalContext();
  e["deterministic_algorithms"] = yes_no(context.deterministicAlgorithms());
  e["deterministic_cudnn"] = yes_no(context.deterministicCuDNN());
  e["benchmark_cudnn"] = yes_no(context.benchmarkCuDNN());
  e["mkldnn"] = yes_no(context.userEnabledMkldnn());
  e["sdp_flash"] = yes_no(context.userEnabledFlashSDP());
  e["sdp_mem_efficient"] = yes_no(context.userEnabledMemEfficientSDP());
  e["sdp_math"] = yes_no(context.userEnabledMathSDP());
  try {
    // Reading the legacy switch throws in programs that mix it with the new one.
    e["tf32_cublas"] = yes_no(context.allowTF32CuBLAS());
  } catch (...) {
    e["tf32_cublas"] = "mixed settings";
  }
  for (const auto device : {at::kCPU, at::getAccelerator().value_or(at::kCUDA)}) {
    if (!at::autocast::is_autocast_available(device)) continue;
    const std::string key = "autocast_" + c10::DeviceTypeName(device, /*lower_case=*/true);
    e[key] = at::autocast::is_autocast_enabled(device)
                 ? c10::toString(at::autocast::get_autocast_dtype(device))
                 : "off";
  }
  for (const char* name : kVariables)
    if (const char* value = std::getenv(name)) e[std::string("env.") + name] = value;
  return e;
}

}  // namespace nanquest
