/// outside_value: the bad tensor that came from outside (batch, weight, buffer, state), read from the file.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "replay/case/case.h"

namespace nanquest {

struct OutsideValue {
  std::string name;
  std::string group;  ///< "batch", "parameters", "buffers", "optimizer state"
  std::int32_t slot = kNone;
  std::int32_t host_write = kNone;  ///< the op by which the program filled it during the step, if it did
  at::Tensor tensor;                ///< its values when the step began, or when they were written
  std::int64_t bad = 0;             ///< non-finite elements
};

/// The value that `doc.culprit` names, read and counted; nothing if it isn't in the file or is finite. Memory
/// that may be uninitialised does not count.
std::optional<OutsideValue> outside_value(const Case& c);

/// "3 NaN, 1 Inf of 64 elements".
std::string bad_text(const at::Tensor& tensor);

}  // namespace nanquest
