/// launch: any operator as a kernel of the device, computed by the CPU's kernel on the device's memory when the
/// stream gets there.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include <functional>

namespace nqdev {

inline bool is_ours(const at::Tensor& t) {
  return t.defined() && t.device().type() == c10::DeviceType::PrivateUse1;
}

/// The same elements as a CPU tensor. It owns nothing, as a kernel's pointers don't, and may be read only while
/// the memory is unlocked (memory.h).
at::Tensor cpu_view(const at::Tensor& device_tensor);

/// Runs `work` now as the device would: memory unlocked, no autograd, no autocast, no observers.
void as_the_device(const std::function<void()>& work);

/// Puts a kernel on the current stream of the device. Throws if the device is lost.
void put_kernel(int device, std::function<void()> kernel);

/// The boxed kernel of all operators without one of their own. What comes out is known from their meta kernels;
/// where there is none, or values decide (nonzero), the host waits.
void launch(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack);

}  // namespace nqdev
