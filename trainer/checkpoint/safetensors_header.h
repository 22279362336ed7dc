/// The header of a safetensors file from outside, every number of it checked.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <istream>
#include <map>
#include <string>
#include <vector>

namespace nanquest::trainer {

struct SafetensorsHeader {
  struct Tensor {
    std::string name;
    at::ScalarType type = at::kFloat;
    std::vector<std::int64_t> shape;
    std::uint64_t begin = 0, end = 0;  ///< offsets in the data
  };
  std::vector<Tensor> tensors;  ///< in the order of their bytes, without holes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_at = 0;  ///< offset of the data in the file
};

/// Reads the start of a file of `size` bytes and leaves `in` at the beginning of the data. Throws BadFile.
SafetensorsHeader read_safetensors_header(std::istream& in, std::uint64_t size);

}  // namespace nanquest::trainer
