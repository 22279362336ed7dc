/// device_ops: work of the probe that a device does in one launch for many tensors. Operators of the
/// dispatcher, so that a device has them by registering kernels (CUDA: device_ops_cuda.cpp); for one that
/// has none the caller makes do with ATen's.
///
///     const at::Tensor found = at::empty({look_count(2, 1)}, …), word = at::empty({}, …);
///     if (looks_at_once(device.type())) look({a, b}, {loss}, found, word);    // nobody waits
///     copy_if({kept_a, kept_b}, {a, b}, word);                                // copies if the word is not 0
///
/// `look` is "nanquest_device::look(Tensor[] tensors, Tensor[] numbers, Tensor(a!) found, Tensor(b!) word)".
/// The tensors are dense, of a type with a gate loop, complex ones as pairs of reals. `found` is fp64: Σx² of
/// each tensor, then the largest |x| of each (Inf counts, NaN doesn't), then how many elements of each are
/// NaN or Inf, then the numbers. `word` is one fp32 number: 1 if an element, a norm or a number is NaN or
/// Inf, else 0.
///
/// `copy_if` is "nanquest_device::copy_if(Tensor(a!)[] to, Tensor[] from, Tensor word)". Tensors are dense;
/// those of a pair have as many bytes, of whatever type, and don't overlap.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nanquest {

/// Elements of `found` for so many tensors and numbers.
constexpr std::int64_t look_count(std::size_t tensors, std::size_t numbers) {
  return static_cast<std::int64_t>(3 * tensors + numbers);
}

/// Whether this kind of device has kernels for `look` and `copy_if`.
bool looks_at_once(c10::DeviceType type);

/// Calls the operator on the current stream. Throws c10::Error if the device refuses.
void look(const std::vector<at::Tensor>& tensors, const std::vector<at::Tensor>& numbers,
          const at::Tensor& found, const at::Tensor& word);

/// The same for `copy_if`, on each device where some of them lie: the word is sent to those, and nobody
/// waits. Autograd and version counters notice nothing.
void copy_if(const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from, const at::Tensor& word);

}  // namespace nanquest
