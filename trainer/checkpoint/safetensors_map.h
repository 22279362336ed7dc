/// A safetensors file mapped into memory: its tensors are views of it, and only the used parts are read.
///
///     Result<MappedSafetensors> file = map_safetensors("model.safetensors");
///     at::Tensor w = file->tensors[0].second;       // on the CPU; keeps the mapping alive
///
/// The file must not change while a tensor of it exists. Replacing it is allowed (the name then refers to
/// another file); truncating it ends the process at the next access.
#pragma once

#include <map>
#include <string>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

struct MappedSafetensors {
  NamedTensors tensors;                         ///< in the order of their bytes; writes change only memory
  std::map<std::string, std::string> metadata;  ///< as in the file
};

/// Maps `path`. Errors as in `read_safetensors`, except for checksums: only the header is read.
Result<MappedSafetensors> map_safetensors(const std::string& path);

}  // namespace nanquest::trainer
