/// Survivors: memory that a step wrote and that is still there. A step that is not watched is compared by it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// Memory that a step wrote and that is still there.
struct Survivor {
  at::Tensor memory;     ///< all of it, without dimensions
  std::uint32_t op = 0;  ///< that wrote it last
  bool outside = false;  ///< it was there before the step
};

/// All memory of floating-point values whose last write was by op `first` of the step or a later one, and that
/// somebody still has, in the order of these writes.
std::vector<Survivor> survivors(const Step& step, std::size_t first);

/// The first NaN or +Inf (-Inf is often meant) in the latest of these that has one: that element, without
/// dimensions. Undefined if there is none. Reads all of it.
at::Tensor last_non_finite(const std::vector<Survivor>& written);

}  // namespace nanquest::record
