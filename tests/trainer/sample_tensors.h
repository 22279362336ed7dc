/// Tensors that a file of weights must return unchanged.
#pragma once

#include <ATen/ATen.h>

#include <cmath>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer::test {

/// A tensor of every format, and tensors with unusual shapes, names or values.
inline NamedTensors sample_tensors() {
  at::manual_seed(1);
  const at::Tensor odd = at::tensor({std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0}, at::kFloat);
  return {{"f32", at::randn({3, 5})},
          {"f16", at::randn({7}).to(at::kHalf)},
          {"bf16", at::randn({2, 3}).to(at::kBFloat16)},
          {"f64", at::randn({2}, at::kDouble)},
          {"i64", at::arange(5)},
          {"i32", at::arange(3, at::kInt)},
          {"u8", at::arange(9, at::kByte)},
          {"bool", at::tensor({1, 0, 1}, at::kLong).to(at::kBool)},
          {"scalar", at::scalar_tensor(2.5, at::kFloat)},
          {"empty", at::empty({0, 4})},
          {"non.finite", odd},
          {"name \"with\" quotes \xc3\xa4", at::ones({1})},
          {"strided", at::randn({4, 6}).t()}};
}

}  // namespace nanquest::trainer::test
