/// replicas: hashes of weights that several ranks should hold alike (nanquest/ranks/replicas.py compares
/// them).
///
///     hashes_of_parts({weight}, {0}, {4096})     // of the first 4096 bytes of its memory
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace nanquest::attach {

/// For each tensor the hash (hash_contents) of `bytes` bytes of its memory from `begins` on, cut at its end;
/// 0 if all of them are zero. Empty unless every tensor is dense in the host's memory. Runs no op of
/// LibTorch.
std::vector<std::int64_t> hashes_of_parts(const std::vector<at::Tensor>& tensors,
                                          const std::vector<std::int64_t>& begins,
                                          const std::vector<std::int64_t>& bytes);

}  // namespace nanquest::attach
