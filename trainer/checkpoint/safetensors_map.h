/// A safetensors file mapped into memory: its tensors are views of it, and only what is looked at is read.
///
///     Result<MappedSafetensors> file = map_safetensors("model.safetensors");
///     at::Tensor w = file->tensors[0].second;       // on the CPU; keeps the mapping alive
///
/// The file must stay as it is while a tensor of it lives: to replace it is fine (its name then stands for
/// another file), to cut it off ends the process at the next look.
#pragma once

#include <map>
#include <string>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

struct MappedSafetensors {
  NamedTensors tensors;  ///< in the order of their bytes; a write to one stays in memory
  std::map<std::string, std::string> metadata;  ///< as it stands in the file
};

/// Maps `path`. Errors as `read_safetensors`, but for checksums: nothing but the header is read.
Result<MappedSafetensors> map_safetensors(const std::string& path);

}  // namespace nanquest::trainer
