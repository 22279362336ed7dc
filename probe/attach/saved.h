/// What the check of saved and loaded files asks: values of any tensors, and names of the program's state.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nanquest::attach {

/// Two numbers for each tensor: how many elements are NaN, and how many are infinite. Tensors on a device are
/// measured there, and only bad ones are copied. For a tensor that is bad and can't be counted: 0 and 1. Any
/// thread; the tensors must be plain (is_plain).
std::vector<std::int64_t> non_finite(const std::vector<at::Tensor>& tensors);

}  // namespace nanquest::attach
