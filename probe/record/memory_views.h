/// The memory of a storage, or a copy of it, as tensors; and whether a tensor lies within it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>

#include "probe/record/slots.h"

namespace nanquest::record {

/// Memory as a 1-D tensor of `type` (of bytes if it is not a whole number of elements). The tensor keeps
/// `keep` alive. Copies nothing.
at::Tensor typed_bytes(const void* data, std::size_t bytes, at::ScalarType type, c10::Storage keep);

/// First values of a storage that the step reads from outside, as a 1-D tensor of `type`: the step's copy, or
/// the memory itself if it has not been overwritten. Undefined if there are none. Copies nothing.
at::Tensor first_elements(const SlotRecord& slot, at::ScalarType type);

/// Whether a tensor of these sizes, strides and offset lies within `count` elements.
bool reaches_within(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                    std::int64_t count);

/// Whether the storage still holds all elements of the tensor: a program may shrink a storage without an op.
bool lies_within_its_memory(const at::Tensor& tensor);

}  // namespace nanquest::record
