/// Births: was it the number format, or the mathematics?
#pragma once

#include <ATen/core/ivalue.h>

#include <vector>

#include "probe/observe/op_traits.h"

namespace nanquest {

/// What an op gives when the same inputs are computed one precision up.
enum class OneUp {
  finite,      ///< the values are representable there: range overflow of the format
  non_finite,  ///< a singular point, a domain fault or an intended infinity
  unknown,     ///< could not be computed (random, fp64 already, no kernel)
};

/// Runs `op` on `inputs` (as they were before the op) with fp16/bf16/fp8 raised to fp32, or, if there
/// is none, fp32 raised to fp64. Changes none of the inputs, no generator, records nothing. Never throws.
OneUp compute_one_up(const OpTraits& op, const std::vector<c10::IValue>& inputs);

}  // namespace nanquest
