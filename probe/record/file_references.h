/// refer_to_files: values of a recording that are also in a file on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "probe/record/record.h"
#include "probe/record/step.h"

namespace nanquest::record {

/// Where named tensors that are parts of a storage lie, by their paths in the file.
struct View {
  std::uint32_t slot = 0;
  std::uint64_t offset = 0;  ///< in bytes, from the start of the storage
};
using Views = std::map<std::string, View>;

/// What is only read and equals, byte for byte, the file that its memory was mapped from becomes a reference
/// to that file (Recording::references) instead of data. Reads those bytes once. `sources`: of named tensors;
/// those of whole storages are in the recording.
void refer_to_files(Recording& recording, const Step& step, Views sources);

}  // namespace nanquest::record
