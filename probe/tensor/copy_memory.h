/// Memory for copies of large storages, reused from one recorded step to the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace nanquest {

/// A copy's memory is reused from this size on.
inline constexpr std::size_t kLargeCopy = std::size_t{4} << 20;

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// The first access to new memory costs a fault per page: asks the system for huge pages for these bytes. The
/// system may ignore it.
void ask_for_huge_pages(void* memory, std::size_t bytes);

/// An uninitialised 1-D CPU tensor of large size. Its memory is in huge pages if the system has them, and
/// returns to a list of spare pieces with the last reference to it: the first access to fresh memory takes
/// longer than a copy of a model's weights into memory that is already mapped. Undefined if there is no
/// memory. Any thread.
at::Tensor large_copy_memory(std::int64_t elements, at::ScalarType type);

/// Returns all spare pieces to the system. Any thread; reads only one number if there are none.
void release_spare_copies();

/// Bytes of the spare pieces.
std::size_t spare_copy_bytes();

}  // namespace nanquest
