/// Which tensor was copied from memory that a file was mapped to: weights that were moved to a device. A
/// snapshot can then refer to the file for them (probe/snapshot/reference.h).
///
/// The values are compared with the file's bytes before anything refers to the file.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

namespace nanquest {

/// `copy` holds the bytes of `mapped`, both contiguous; the mapping is kept as long as `copy` exists. No
/// effect if they are one tensor or differ in size. Any thread.
void came_from(const at::Tensor& copy, const at::Tensor& mapped);

/// The CPU memory with the bytes of the storage: the memory from which it was copied, or its own; null if
/// there is none.
const std::byte* memory_behind(const c10::StorageImpl& storage);

}  // namespace nanquest
