/// fsdp_copies: the operators of FSDP that only copy (probe/trace/op_facts.h names them). Python registers
/// them, so that a process without it has no kernel of theirs; here they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "probe/trace/ids.h"

namespace nanquest::trace {

/// Gives the dispatcher of this process those that it lacks; once. Their schemas are those of LibTorch 2.11
/// to 2.15. Throws c10::Error if somebody defined one at the same time.
void define_fsdp_copies();

/// Whether this one has no kernel but ours, and what it wrote is on record, as an op's that can't be run
/// again: in files of before.
bool is_kept_copy(const OpRow& op);

/// Of such a one: in a run in which what it copies may be another value than the recorded one, copies what
/// `value` gives for the op's inputs into `written`, the op's written tensors, in place; what it does not
/// copy stays. Nothing happens if the arguments are others than known. Throws c10::Error if sizes do not fit.
void copy_as_fsdp(const SnapshotDoc& doc, const OpRow& op, const std::function<at::Tensor(TensorId)>& value,
                  std::vector<at::Tensor>& written);

}  // namespace nanquest::trace
