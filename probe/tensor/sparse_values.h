/// The values of sparse tensors.
#pragma once

#include <ATen/core/Tensor.h>

namespace nanquest {

/// The values of a sparse tensor (COO), coalesced or not, as the plain tensor that stands for it wherever values are
/// looked at. Undefined for all other tensors, and where the values are no plain memory of a type that a snapshot
/// holds. Runs no op. Any thread.
at::Tensor values_standing_for(const at::Tensor& tensor);

}  // namespace nanquest
