#include "probe/capture/first_value.h"

#include <ATen/ATen.h>

#include "probe/capture/recorder_parts.h"

namespace nanquest {

NamedTensor add_first_value(Recording& recording, const std::string& path, const std::string& name,
                            const at::Tensor& tensor, std::int32_t slot, const at::Tensor& saved) {
  NamedTensor row = by_name_only(name, tensor);
  row.slot = slot;
  const at::NoGradGuard no_grad;
  // A slot that the trace produced (a buffer made new inside the step) has no first value: what it is now is
  // kept.
  const bool first_known =
      saved.defined() && saved.scalar_type() == tensor.scalar_type() &&
      reaches_within(tensor.sizes(), tensor.strides(), tensor.storage_offset(), saved.numel());
  const at::Tensor first = first_known
                               ? saved.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset())
                               : tensor.detach().to(at::kCPU);
  const bool whole = first_known && tensor.is_contiguous() && tensor.numel() == saved.numel();
  row.data = path;
  if (whole && slot != kNone) {
    // Stored once: the slot's bytes are this tensor, so the slot points here.
    Slot& owner = recording.doc.slots[static_cast<std::size_t>(slot)];
    std::erase_if(recording.data, [&](const auto& d) { return d.first == owner.data; });
    owner.data = row.data;
  }
  recording.data.emplace_back(row.data, first.contiguous());
  return row;
}

bool reaches_within(c10::IntArrayRef sizes, c10::IntArrayRef strides, std::int64_t offset,
                    std::int64_t count) {
  std::int64_t last = offset;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    last += (sizes[d] - 1) * strides[d];
  }
  return last < count;
}

}  // namespace nanquest
