/// own_readers: an op and its own derivative read something else; every other reader of the same memory sees
/// what was recorded.
///
/// A value that an op reads may be read by others too: the derivative of a maximum compares its input with
/// the maximum that it made. A guard in the program (`x / n.clamp(min=1)`) makes a new tensor and leaves `n`
/// as it was; so does this.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "replay/case/case.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// What takes the place of an argument of an op.
struct ReadInstead {
  std::size_t position = 0;  ///< of the argument in the op's schema; of a list: each of its tensors
  /// The value to read, made from the one that is there, which must not be changed.
  std::function<at::Tensor(const at::Tensor&)> value;
  /// Only where the derivative reads it with the same shape and strides (`value` knows places, not values).
  bool of_this_view = false;
};

/// The step in which `op` and the ops of its derivative read `what`. To its derivative belong the ops of
/// backward that differentiate it, those that differentiate these, and those of which it is not known what
/// they differentiate (a derivative that the program or the compiler wrote). An argument that `op` itself
/// overwrites is changed in place.
RunOptions reading_instead(const Case& c, std::int32_t op, const std::vector<ReadInstead>& what);

/// True if the step reads the argument of `op` at `position` elsewhere too.
bool others_read(const Case& c, std::int32_t op, std::size_t position);

}  // namespace nanquest
