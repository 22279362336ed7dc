#include "trainer/precision/device.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>

#include <cstdlib>

namespace nanquest::trainer {
namespace {

using Format = std::optional<at::ScalarType>;  // none: the device's default

constexpr std::pair<Format, std::string_view> kAmpFormats[] = {
    {std::nullopt, "auto"}, {at::kFloat, "fp32"}, {at::kBFloat16, "bf16"}, {at::kHalf, "fp16"}};

at::Generator generator_of(at::Device device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

// Calls the CUDA runtime that LibTorch has already loaded, so that nothing here links CUDA.
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
  list.add(
      "amp-dtype", o.amp,
      "fp32 (no autocast), bf16 or fp16; auto: bf16 on CUDA from compute capability 8.0 on, fp16 before, "
      "fp32 on a CPU",
      Words<Format>(kAmpFormats));
  list.add("tf32-matmul", o.tf32_matmul, "multiply fp32 matrices as tf32 on CUDA").negatable = true;
  list.add("tf32-conv", o.tf32_conv, "the same for convolutions").negatable = true;
  list.add("strict", o.strict, "refuse a format that the device lacks, in place of using fp32");
  list.incidental({"strict"});
}

Result<std::vector<std::string>> settle_formats(NumericsOptions& options, at::Device device, int major) {
  constexpr int kAmpere = 8;
  const bool modern = device.is_cuda() && major >= kAmpere;
  const std::string capability =
      major > 0 ? "compute capability " + std::to_string(major) + ".x" : "compute capability unknown";
  const std::string where = device.str() + (device.is_cuda() ? " (" + capability + ")" : "");
  std::vector<std::string> remarks;
  if (!options.amp) {
    options.amp = modern ? at::kBFloat16 : device.is_cuda() ? at::kHalf : at::kFloat;
    remarks.push_back("amp-dtype auto: " + short_name(*options.amp) + " on " + where);
  }
  const auto lacking = [&](const std::string& key, const std::string& what) -> Status {
    if (options.strict)
      return Error{ErrorCode::unsupported, key + ": " + what,
                   "without --strict fp32 is used in its place; --amp-dtype auto takes what the device has"};
    remarks.push_back(key + ": " + what + "; fp32 is used in its place");
    return {};
  };
  if (options.amp == at::kBFloat16 && device.is_cuda() && !modern) {
    if (Status s = lacking("amp-dtype", "bf16 is only emulated on " + where + ", it needs 8.0"); !s)
      return s.error();
    options.amp = at::kFloat;
  }
  const std::pair<const char*, bool*> multipliers[] = {{"tf32-matmul", &options.tf32_matmul},
                                                       {"tf32-conv", &options.tf32_conv}};
  for (const auto& [key, wanted] : multipliers) {
    if (!*wanted || modern) continue;
    if (Status s = lacking(key, where + " has no tf32, it needs CUDA and compute capability 8.0"); !s)
      return s.error();
    *wanted = false;
  }
  return remarks;
}

std::string short_name(at::ScalarType dtype) {
  std::string name = word_of<Format>(dtype, kAmpFormats);
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
    at::globalContext().setAllowTF32CuBLAS(options.tf32_matmul);
    at::globalContext().setAllowTF32CuDNN(options.tf32_conv);
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

void seed_generators(at::Device device, std::uint64_t seed) {
  const auto begin = [&](at::Device d) {
    at::Generator generator = generator_of(d);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  };
  begin(at::kCPU);
  if (device.is_cuda()) begin(device);
}

}  // namespace nanquest::trainer
