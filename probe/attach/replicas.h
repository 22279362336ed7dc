/// replicas: hashes of weights that several ranks should hold alike (nanquest/ranks/replicas.py compares them).
///
///     hashes_of_parts({weight}, {0}, {4096})     // of the first 4096 bytes of its memory
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nanquest::attach {

/// For each tensor the hash (hash_contents) of `bytes` bytes of its memory from `begins` on, as far as it
/// goes; 0 if all of them are zero. Nothing at all unless every tensor lies dense in the host's memory.
/// Computes nothing that LibTorch would see.
std::vector<std::int64_t> hashes_of_parts(const std::vector<at::Tensor>& tensors,
                                          const std::vector<std::int64_t>& begins,
                                          const std::vector<std::int64_t>& bytes);

}  // namespace nanquest::attach
