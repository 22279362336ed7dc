/// The head of a safetensors file: weights that any other tool can open. All writers of that format use it.
/// After it come the bytes of the tensors, contiguous, in the order given.
///
///     std::string file = safetensors_head({{"w", "F32", {2, 3}, 24}}, {{"step", "300"}});
///     file.append(reinterpret_cast<const char*>(data), 24);
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace nanquest {

/// One tensor of the file.
struct SafetensorsEntry {
  std::string name;
  std::string type;  ///< spelling of the format: "F32", "BF16", …
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
};

/// Length (8 bytes, little-endian) and JSON of the header, padded so that data starts at a multiple of 8.
/// Throws std::exception if a name is not UTF-8.
std::string safetensors_head(const std::vector<SafetensorsEntry>& tensors,
                             const std::map<std::string, std::string>& metadata);

}  // namespace nanquest
