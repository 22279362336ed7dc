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

/// What lives on from step to step (a weight, a buffer, a moment), if `op` copies into it, or moves what is
/// then copied into it: that is a state, and no data. Nothing otherwise, and where a module's forward pass
/// copies into a buffer, which may keep data there.
SlotId state_copied_into(const Case& c, std::int32_t op);

/// Whose that memory is. A model that was made in the step has weights too: memory with a name that requires
/// a gradient.
SlotOrigin state_origin(const Case& c, SlotId slot);

/// Why the program may not have written these numbers, which it wrote during the step if anything did; empty
/// if it did.
std::string doubt_of_written(const Case& c, const OutsideValue& value);

/// Why this tensor, which the model was not called with, may be no data; empty if something shows that it was
/// loaded: a loss takes it as its target, a loader drew the samples, only some of the batch's samples are bad
/// in it, or what ran since the last update is on record and did not make it.
std::string doubt_of_data(const Case& c, const OutsideValue& value, const std::vector<std::int64_t>& poison);

/// Several samples hold an infinity of one sign, and mending a single one of them makes the step finite. The
/// infinity is meant, then (a mask): in the others it does no harm. By trying; at most eight samples.
bool is_meant_elsewhere(const Case& c, const OutsideValue& value, const std::vector<std::int64_t>& poison);

}  // namespace nanquest
