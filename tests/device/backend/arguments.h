/// arguments: what an operator is called with, for the host, for the meta device and for a kernel.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <optional>
#include <vector>

namespace nqdev {

/// Calls `f` with each tensor of a value, undefined ones included.
void each_tensor_in(const c10::IValue& value, const std::function<void(const at::Tensor&)>& f);

/// How tensors and devices of a call are replaced.
struct Converter {
  std::function<at::Tensor(const at::Tensor&)> tensor;
  c10::Device device;

  /// Meta tensors of the same shape; single numbers on the CPU stay.
  static Converter to_meta();
  /// CPU tensors over the device's memory; the host's tensors are copied as they are now.
  static Converter to_views();
  /// CPU tensors with copies of what is there now, which may be resized. Memory must be unlocked.
  static Converter to_copies();
};

std::vector<c10::IValue> converted(const std::vector<c10::IValue>& values, const Converter& with);

/// True if all defined tensors of the value are meta tensors.
bool all_meta(const c10::IValue& value);
/// New device tensors of these shapes.
c10::IValue like_meta(const c10::IValue& value, int device);
/// New device tensors with these values; other arguments stay. The host has waited.
c10::IValue to_device(const c10::IValue& value, int device);
/// Copies CPU tensors, one by one, into those of `target`; None and undefined tensors are left alone.
void copy_into(const c10::IValue& target, const c10::IValue& value);
/// Copies back into the program's tensors what `to_copies` made of them and a kernel has written.
void write_back(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& copies,
                const std::vector<c10::IValue>& arguments);

/// The device of the first of our tensors, or one of ours that is named.
std::optional<int> device_in(const c10::IValue& value);
bool is_generator(const c10::Argument& argument);

}  // namespace nqdev
