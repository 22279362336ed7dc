/// dtype_map: which dtype a precision computes in, and which dtype holds both of two.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "replay/trace/replayer.h"

namespace nanquest::trace {

/// True for real floating types, the fp8 ones included.
bool is_float(at::ScalarType type);

/// The dtype that `recorded` becomes under `precision` (see Precision); integers and bool stay.
at::ScalarType target_type(at::ScalarType recorded, Precision precision);

/// The narrowest dtype that holds every value of both floating (or complex) types exactly.
at::ScalarType wider_type(at::ScalarType a, at::ScalarType b);

/// dtype of the real and imaginary parts of a complex dtype; any other dtype as it is.
at::ScalarType part_type(at::ScalarType type);

/// The complex dtype whose parts hold every value of the floating type `part`: bfloat16 has none of its own
/// and gets complex64.
at::ScalarType complex_of(at::ScalarType part);

/// "as recorded", "bf16", "fp32", "fp64".
std::string_view precision_name(Precision precision);

}  // namespace nanquest::trace
