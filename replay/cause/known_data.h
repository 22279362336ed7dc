/// known_data: is a bad tensor that no op on record computed data at all? It may be what the program computed
/// itself, or a state that it loaded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/cause/outside_value.h"

namespace nanquest {

/// Samples of the batch that hold something non-finite, where the tensor's first dimension is the batch's.
std::vector<std::int64_t> bad_samples(const Case& c, const at::Tensor& tensor);

/// The model was called with it.
bool is_given_to_model(const Case& c, const OutsideValue& value);

/// The culprit is a loss, and holds the output against it.
bool is_target(const Case& c, const OutsideValue& value);

/// The memory that lives on from step to step and that `op` copies into; {} if it is no such copy.
SlotId kept_by_copy(const Case& c, std::int32_t op);

/// What lives on from step to step (a weight, a buffer, a moment), if `op` copies into it, or moves what is
/// then copied into it: that is a state, and no data. Nothing otherwise, and where a module's forward pass
/// copies into a buffer, which may keep data there.
SlotId state_copied_into(const Case& c, std::int32_t op);

/// Whose that memory is. A model that was made in the step has weights too: memory with a name that requires
/// a gradient.
SlotOrigin state_origin(const Case& c, SlotId slot);

}  // namespace nanquest
