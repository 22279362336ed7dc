/// Which tensor was copied from memory that a file was mapped to: weights that went to a device.
/// A snapshot may then refer to the file for them (probe/snapshot/reference.h).
///
/// Nothing is taken on trust: values are compared with the file's bytes before anything refers to it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace nanquest {

/// `copy` holds the bytes of `mapped`, both contiguous; the mapping is kept for as long as `copy` lives.
/// Nothing happens if they are one tensor, or differ in size. Any thread.
void came_from(const at::Tensor& copy, const at::Tensor& mapped);

/// The memory on the CPU whose bytes are those of the storage: what it was copied from, or its own; null if
/// there is none.
const std::byte* memory_behind(const c10::StorageImpl& storage);

}  // namespace nanquest
