/// Named tensors as they were when a step began: rows and data of a recording.
#pragma once

#include <cstdint>
#include <string>

#include "probe/capture/record.h"

namespace nanquest {

/// The row of `tensor`, stored under `path`. `first`: the first values of its whole storage as a 1-D tensor
/// of the tensor's type (slot `slot` of the trace); where they are not known, undefined, the values of now
/// are stored. Values that fill their storage are stored once: the slot's data then is `path`.
NamedTensor add_first_value(Recording& recording, const std::string& path, const std::string& name,
                            const at::Tensor& tensor, std::int32_t slot, const at::Tensor& first);

/// Whether a tensor of these sizes, strides and offset lies within `count` elements.
bool reaches_within(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                    std::int64_t count);

}  // namespace nanquest
