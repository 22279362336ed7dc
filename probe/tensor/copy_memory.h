/// Memory for copies of large storages, kept from one recorded step to the next.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace nanquest {

/// From this size on a copy's memory is worth keeping.
inline constexpr std::size_t kLargeCopy = std::size_t{4} << 20;

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Memory that is touched for the first time costs a fault a page: asks the system for huge pages in these
/// bytes. It need not give any.
void ask_for_huge_pages(void* memory, std::size_t bytes);

/// An unfilled 1-D CPU tensor of large size. Its memory is in huge pages where the system has them, and goes
/// back to a list of spare pieces with the last reference to it: touching fresh memory takes longer than
/// copying a model's weights into memory that was there before. Undefined if there is no memory to be had.
/// Any thread.
at::Tensor large_copy_memory(std::int64_t elements, at::ScalarType type);

/// Gives all spare pieces back to the system. Any thread; a look at one number if there are none.
void release_spare_copies();

/// Bytes of the spare pieces.
std::size_t spare_copy_bytes();

}  // namespace nanquest
