#include "probe/tensor/device_ops.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <cmath>

#include "probe/numerics/gate_loops.h"
#include "probe/tensor/back_end.h"
#include "probe/tensor/cuda_module.h"
#include "probe/tensor/device_ops_cuda.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

constexpr char kLook[] = "nanquest_device::look";
using Look = void(at::TensorList, at::TensorList, at::Tensor, at::Tensor);

// NOLINTBEGIN(performance-unnecessary-value-param): kernels have the operator's own signature
/// The CPU's kernel: what others are compared with, and what a device for tests computes by.
void look_on_cpu(at::TensorList tensors, at::TensorList numbers, at::Tensor found, at::Tensor word) {
  auto* const out = found.mutable_data_ptr<double>();
  const std::size_t count = tensors.size();
  bool bad = false;
  for (std::size_t i = 0; i < count; ++i) {
    const at::Tensor values = tensors[i].is_complex() ? at::view_as_real(tensors[i]) : tensors[i];
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

void look_without_values(at::TensorList, at::TensorList, at::Tensor, at::Tensor) {}
// NOLINTEND(performance-unnecessary-value-param)

c10::OperatorHandle defined() {
  auto& dispatcher = c10::Dispatcher::singleton();
  // Another library of ours in this process may have defined it.
  if (const auto known = dispatcher.findSchema({kLook, ""})) return *known;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "nanquest_device", std::nullopt, __FILE__, __LINE__);
  library->def("look(Tensor[] tensors, Tensor[] numbers, Tensor(a!) found, Tensor(b!) word) -> ()");
  library->impl("look", torch::dispatch(c10::DispatchKey::CPU, &look_on_cpu));
  library->impl("look", torch::dispatch(c10::DispatchKey::Meta, &look_without_values));
  library->impl("look", torch::dispatch(c10::DispatchKey::CUDA, &look_on_cuda));
  return dispatcher.findSchemaOrThrow(kLook, "");
}

const c10::OperatorHandle& look_operator() {
  static const c10::OperatorHandle one = defined();
  return one;
}

}  // namespace

bool looks_at_once(c10::DeviceType type) {
  if (type == c10::kCUDA && !runs_cuda_kernels()) return false;
  const auto key = c10::computeDispatchKey(at::kFloat, at::kStrided, c10::Device(type, -1));
  return look_operator().hasKernelForDispatchKey(key);
}

void look(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& numbers,
          const at::Tensor& found, const at::Tensor& word) {
  const at::AutoDispatchBelowADInplaceOrView no_autograd;
  static const auto call = look_operator().typed<Look>();
  call.call(tensors, numbers, found, word);
}

}  // namespace nanquest
