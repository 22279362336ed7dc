/// Memory of a storage, or a copy of it, as tensors; and whether a tensor lies within what there is.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>

#include "probe/record/slots.h"

namespace nanquest::record {

/// Memory as a 1-D tensor of `type` (of bytes, where they don't fill elements), which keeps `keep` alive.
/// Copies nothing.
at::Tensor typed_bytes(const void* data, std::size_t bytes, at::ScalarType type, c10::Storage keep);

/// First values of a storage that the step reads from outside, as far as the step itself still has them (its
/// copy, or the memory that nobody has written since): as many elements of `type` as there are, 1-D. Undefined
/// if there are none. Copies nothing.
at::Tensor first_elements(const SlotRecord& slot, at::ScalarType type);

/// Whether a tensor of these sizes, strides and offset lies within `count` elements.
bool reaches_within(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                    std::int64_t count);

/// Whether the storage still has all elements of the tensor: a program may shrink it without an op.
bool lies_within_its_memory(const at::Tensor& tensor);

}  // namespace nanquest::record
