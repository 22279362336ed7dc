#include "probe/tensor/device_ops.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "probe/numerics/gate_loops.h"
#include "probe/tensor/back_end.h"
#include "probe/tensor/cuda_module.h"
#include "probe/tensor/device_ops_cuda.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

using Look = void(at::TensorList, at::TensorList, at::Tensor, at::Tensor);
using CopyIf = void(at::TensorList, at::TensorList, at::Tensor);

// NOLINTBEGIN(performance-unnecessary-value-param): kernels have the operator's own signature
/// The CPU's kernel: what others are compared with, and what a device for tests computes by.
void look_on_cpu(at::TensorList tensors, at::TensorList numbers, at::Tensor found, at::Tensor word) {
  auto* const out = found.mutable_data_ptr<double>();
  const std::size_t count = tensors.size();
  bool bad = false;
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor values = as_reals(tensors[i]);
    const LoopStats stats = measure(*dtype_of(values.scalar_type()), values.const_data_ptr(),
                                    static_cast<std::size_t>(values.numel()));
    out[i] = stats.sum_squares;
    out[count + i] = stats.amax;
    out[2 * count + i] = static_cast<double>(stats.non_finite);
    bad = bad || stats.non_finite > 0 || !std::isfinite(stats.sum_squares);
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    out[3 * count + i] = numbers[i].item().toDouble();
    bad = bad || !std::isfinite(out[3 * count + i]);
  }
  *word.mutable_data_ptr<float>() = bad ? 1 : 0;
}

void copy_if_on_cpu(at::TensorList to, at::TensorList from, at::Tensor word) {
  if (*word.const_data_ptr<float>() == 0) return;
  for (std::size_t i = 0; i < to.size(); ++i)
    std::memcpy(to[i].data_ptr(), from[i].const_data_ptr(), to[i].nbytes());
}

void look_without_values(at::TensorList, at::TensorList, at::Tensor, at::Tensor) {}
void copy_without_values(at::TensorList, at::TensorList, at::Tensor) {}
// NOLINTEND(performance-unnecessary-value-param)

c10::OperatorHandle defined(const char* name, const std::function<void(torch::Library&)>& define) {
  auto& dispatcher = c10::Dispatcher::singleton();
  // Another library of ours in this process may have defined it.
  if (const auto known = dispatcher.findSchema({name, ""})) return *known;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "nanquest_device", std::nullopt, __FILE__, __LINE__);
  define(*library);
  return dispatcher.findSchemaOrThrow(name, "");
}

const c10::OperatorHandle& look_operator() {
  static const c10::OperatorHandle one = defined("nanquest_device::look", [](torch::Library& library) {
    library.def("look(Tensor[] tensors, Tensor[] numbers, Tensor(a!) found, Tensor(b!) word) -> ()");
    library.impl("look", torch::dispatch(c10::DispatchKey::CPU, &look_on_cpu));
    library.impl("look", torch::dispatch(c10::DispatchKey::Meta, &look_without_values));
    library.impl("look", torch::dispatch(c10::DispatchKey::CUDA, &look_on_cuda));
  });
  return one;
}

const c10::OperatorHandle& copy_if_operator() {
  static const c10::OperatorHandle one = defined("nanquest_device::copy_if", [](torch::Library& library) {
    library.def("copy_if(Tensor(a!)[] to, Tensor[] from, Tensor word) -> ()");
    library.impl("copy_if", torch::dispatch(c10::DispatchKey::CPU, &copy_if_on_cpu));
    library.impl("copy_if", torch::dispatch(c10::DispatchKey::Meta, &copy_without_values));
    library.impl("copy_if", torch::dispatch(c10::DispatchKey::CUDA, &copy_if_on_cuda));
  });
  return one;
}

}  // namespace

bool looks_at_once(c10::DeviceType type) {
  if (type == c10::kCUDA && !runs_cuda_kernels()) return false;
  const auto key = c10::computeDispatchKey(at::kFloat, at::kStrided, c10::Device(type, -1));
  return look_operator().hasKernelForDispatchKey(key) && copy_if_operator().hasKernelForDispatchKey(key);
}

void look(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& numbers,
          const at::Tensor& found, const at::Tensor& word) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  static const auto call = look_operator().typed<Look>();
  call.call(tensors, numbers, found, word);
}

void copy_if(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from, const at::Tensor& word) {
  TORCH_CHECK(to.size() == from.size(), "copy_if has ", to.size(), " targets and ", from.size(), " sources");
  for (std::size_t i = 0; i < to.size(); ++i)
    TORCH_CHECK(to[i].nbytes() == from[i].nbytes(), "copy_if: tensor ", i, " has ", to[i].nbytes(),
                " bytes and its source ", from[i].nbytes());
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  static const auto call = copy_if_operator().typed<CopyIf>();
  std::vector<at::Device> devices;
  for (const at::Tensor& target : to)
    if (std::find(devices.begin(), devices.end(), target.device()) == devices.end())
      devices.push_back(target.device());
  if (devices.size() == 1 && devices.front() == word.device()) return call.call(to, from, word);
  for (const at::Device device : devices) {
    std::vector<at::Tensor> targets, sources;
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i].device() == device) {
        targets.push_back(to[i]);
        sources.push_back(from[i]);
      }
    call.call(targets, sources, word.to(device, /*non_blocking=*/true));
  }
}

}  // namespace nanquest
