/// fsdp_copies: operators that FSDP registers in Python and that only copy. Replay has no kernel of theirs
/// and takes what was recorded; in a run of several ranks, where what they copy may be another value than the
/// recorded one, they are done here.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "probe/trace/ids.h"

namespace nanquest::trace {

/// fsdp::all_gather_copy_in, split_with_sizes_copy, chunk_cat and chunk_cat_mixed_dtype.
bool is_fsdp_copy(const OpRow& op);

/// Copies what `value` gives for the op's inputs into `written`, the op's written tensors, in place; what it
/// does not copy stays. Nothing happens if the arguments are others than known. Throws c10::Error if sizes do
/// not fit.
void copy_as_fsdp(const SnapshotDoc& doc, const OpRow& op, const std::function<at::Tensor(TensorId)>& value,
                  std::vector<at::Tensor>& written);

}  // namespace nanquest::trace
