#include "probe/tensor/cuda_module.h"

#include <c10/core/Stream.h>
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "probe/tensor/torch_versions.h"

namespace nanquest {
namespace {

constexpr const char* kName = "libnanquest_cuda.so";

/// Where this code is loaded from.
std::filesystem::path own_folder() {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<void*>(&own_folder), &self) || !self.dli_fname) return {};
  std::error_code failed;
  // The program itself may be known by the name that it was started with.
  const auto file = std::filesystem::canonical(self.dli_fname, failed);
  return failed ? std::filesystem::path() : file.parent_path();
}

/// The library's file; its name alone where it is in none of the places.
std::string find() {
  std::error_code failed;
  const auto in = [&](const std::filesystem::path& folder) { return std::filesystem::exists(folder / kName, failed); };
  std::filesystem::path folder = own_folder();
  for (int up = 0; up < 3 && !folder.empty(); ++up, folder = folder.parent_path())
    for (const auto& place : {folder, folder / "lib"})
      if (in(place)) return place / kName;
  return in(NANQUEST_LIBRARIES) ? NANQUEST_LIBRARIES + std::string("/") + kName : kName;
}

Result<const CudaKernels*> load() {
  if constexpr (!TellsNativeStream<c10::Stream>)
    return Error{ErrorCode::unsupported, "nanquest's kernels for GPUs need PyTorch 2.11 or newer, which tells its streams", "PyTorch's operators are used instead"};
  const std::string path = find();
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error{ErrorCode::unsupported, "nanquest's kernels for GPUs can't be loaded: " + std::string(dlerror()), ""};
  const auto kernels = reinterpret_cast<decltype(&nanquest_cuda_kernels)>(dlsym(library, "nanquest_cuda_kernels"));
  if (!kernels || kernels()->version != CudaKernels::kVersion)
    return Error{ErrorCode::unsupported, path + " is of another build of nanquest", "install nanquest again"};
  return kernels();
}

}  // namespace

const Result<const CudaKernels*>& cuda_kernels() {
  static const Result<const CudaKernels*> one = load();
  return one;
}

const Status& cuda_kernels_run() {
  static const Status one = cuda_kernels() ? (*cuda_kernels())->can_look() : Status(cuda_kernels().error());
  return one;
}

}  // namespace nanquest
