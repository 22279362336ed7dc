/// fsdp_copies: the operators of FSDP that only copy (probe/trace/op_facts.h names them). Python registers
/// them, so a process without Python has no kernels for them; these are defined here.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "probe/trace/ids.h"

namespace nanquest::trace {

/// Registers those that this process lacks; once. Their schemas are those of LibTorch 2.11 to 2.15. Throws
/// c10::Error if they are defined elsewhere at the same time.
void define_fsdp_copies();

/// Whether this op has only our kernel, and its results are recorded like those of an op that can't be run
/// again: in older files.
bool is_kept_copy(const OpRow& op);

/// For such an op: in a run in which its inputs may differ from the recorded ones, copies what `value`
/// returns for the op's inputs into `written`, the op's written tensors, in place; what it does not copy
/// stays. Does nothing if the arguments are unknown. Throws c10::Error if sizes do not fit.
void copy_as_fsdp(const SnapshotDoc& doc, const OpRow& op, const std::function<at::Tensor(TensorId)>& value,
                  std::vector<at::Tensor>& written);

}  // namespace nanquest::trace
