#include "trainer/precision/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cstdlib>

namespace nanquest::trainer {
namespace {

constexpr std::pair<at::ScalarType, std::string_view> kAmpFormats[] = {
    {at::kFloat, "fp32"}, {at::kBFloat16, "bf16"}, {at::kHalf, "fp16"}};

at::Generator generator_of(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

// Asked of the CUDA runtime that LibTorch has already loaded, so that nothing here links CUDA.
int cuda_major(at::Device device) {
  if (!device.is_cuda()) return 0;
  using Query = int (*)(int*, int, int);
  constexpr int kComputeCapabilityMajor = 75;  // cudaDevAttrComputeCapabilityMajor
  auto* query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  int major = 0;
  return query != nullptr && query(&major, kComputeCapabilityMajor, device.index()) == 0 ? major : 0;
}

Result<at::Device> find_device(const std::string& name) {
  const std::string kind = name.substr(0, name.find(':'));
  if (kind == "cpu" && name == kind) return at::Device(at::kCPU);
  if (kind != "cuda")
    return Error{ErrorCode::usage, "device " + name + " is not known", "cpu, cuda or cuda:0"};
  int index = 0;
  if (name != kind) {
    char* end = nullptr;
    const std::string number = name.substr(kind.size() + 1);
    index = static_cast<int>(std::strtol(number.c_str(), &end, 10));
    if (number.empty() || *end != '\0' || index < 0)
      return Error{ErrorCode::usage, "device " + name + " is not known", "cpu, cuda or cuda:0"};
  }
  if (!at::hasCUDA())
    return Error{ErrorCode::unsupported,
                 "device " + name + " is not available: this build of LibTorch runs without CUDA here",
                 "use --device cpu"};
  const auto count = static_cast<int>(at::getNumGPUs());
  if (index >= count)
    return Error{
        ErrorCode::unsupported,
        "device " + name + " is not there: this machine shows " + std::to_string(count) + " CUDA devices",
        "use --device cpu, or another index"};
  return at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(index));
}

void declare(SettingList& list, NumericsOptions& o) {
  list.group("Run");
  list.add("device", o.device, "cpu, cuda or cuda:N");
  list.add("threads", o.threads, "CPU threads (0 = LibTorch's choice)");
  list.add("deterministic", o.deterministic, "refuse kernels that give other bits each time");
  list.group("Precision");
  list.add("amp-dtype", o.amp, "fp32 (no autocast), bf16 or fp16", Words<at::ScalarType>(kAmpFormats));
  list.add("tf32", o.tf32, "multiply fp32 as tf32 on CUDA").negatable = true;
}

Result<at::Device> usable_device(const NumericsOptions& options) {
  Result<at::Device> device = find_device(options.device);
  if (!device) return device;
  if (Status s = check_formats(options, *device, cuda_major(*device)); !s) return s.error();
  return device;
}

Status check_formats(const NumericsOptions& options, at::Device device, int major) {
  if (options.amp == at::kBFloat16 && device.is_cuda() && major < 8)
    return Error{ErrorCode::unsupported,
                 "bf16 is only emulated on " + device.str() + " (compute capability below 8.0)",
                 "use --amp-dtype fp16 or fp32"};
  if (options.tf32 && !(device.is_cuda() && major >= 8))
    return Error{ErrorCode::unsupported,
                 "tf32 is not a format of " + device.str() + " (it needs CUDA and compute capability 8.0)",
                 "leave --tf32 out"};
  return {};
}

std::string short_name(at::ScalarType dtype) {
  const std::string name = word_of(dtype, Words<at::ScalarType>(kAmpFormats));
  if (!name.empty()) return name;
  return dtype == at::kDouble ? "fp64" : c10::toString(dtype);
}

void set_numerics(std::uint64_t seed, const NumericsOptions& options) {
  at::manual_seed(seed);
  at::globalContext().setDeterministicAlgorithms(options.deterministic, false);
  if (options.deterministic) {
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setBenchmarkCuDNN(false);
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  }
  if (at::hasCUDA()) {
    at::globalContext().setAllowTF32CuBLAS(options.tf32);
    at::globalContext().setAllowTF32CuDNN(options.tf32);
  }
  if (options.threads > 0) at::set_num_threads(options.threads);
}

NamedTensors rng_states(at::Device device) {
  NamedTensors states;
  const auto save = [&](const std::string& name, at::Device d) {
    at::Generator generator = generator_of(d);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    states.emplace_back(name, generator.get_state());
  };
  save("cpu", at::kCPU);
  if (device.is_cuda()) save("cuda", device);
  return states;
}

void set_rng_states(at::Device device, const NamedTensors& states) {
  for (const auto& [name, state] : states) {
    at::Generator generator = generator_of(name == "cpu" ? at::Device(at::kCPU) : device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace nanquest::trainer
