/// Outputs of a step's ops that may not be repeatable, and of collectives, which may write after they have
/// returned: which of them a step keeps, and when. They go into Step::kept.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// Random numbers drawn on a device can't be drawn again on another one.
bool draws_on_device(const Step& step, const OpRecord& op);

/// Keeps what the op has returned in memory that is new to the step (from slot `first_new` on) and what it
/// has `written`.
void keep_outputs(Step& step, std::uint32_t op, std::uint32_t first_new,
                  c10::ArrayRef<const c10::IValue> outputs, const std::vector<at::Tensor>& written);

/// The last output of the op so far is a collective's: it is kept when the program has waited for it. `token`:
/// of the tensor, among the step's words. `argument`: it is a written one.
void keep_later(Step& step, std::uint32_t op, const at::Tensor& tensor, std::uint32_t slot,
                std::uint32_t token, bool argument);
/// … which is known when an op reads it: its values are kept now.
void settle(Step& step, std::uint32_t slot);
void settle_all(Step& step);

/// Waiting for a collective may copy the result from the process group's own memory to its target (gloo's
/// reduce_scatter). The step sees that source memory for the first time, and it is then written to the
/// collective's output.
bool finishes_collective(const Step& step, const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);

}  // namespace nanquest::record
