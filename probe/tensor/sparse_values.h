/// The values of sparse tensors.
#pragma once

#include <ATen/core/Tensor.h>

namespace nanquest {

/// The values of a sparse tensor (COO), coalesced or not, as a plain tensor that is scanned in its place.
/// Undefined for all other tensors, and if the values are not plain memory of a type that a snapshot can
/// hold. Runs no op. Any thread.
at::Tensor values_standing_for(const at::Tensor& tensor);

}  // namespace nanquest
