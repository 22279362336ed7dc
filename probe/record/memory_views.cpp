#include "probe/record/memory_views.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest::record {
namespace {

at::Tensor elements(const void* data, std::size_t count, const at::TensorOptions& options,
                    c10::Storage keep) {
  if (count == 0) return at::empty({0}, options);
  return at::from_blob(
      const_cast<void*>(data), {static_cast<std::int64_t>(count)}, [keep = std::move(keep)](void*) {},
      options);
}

}  // namespace

at::Tensor typed_bytes(const void* data, std::size_t bytes, at::ScalarType type, c10::Storage keep) {
  const std::size_t item = c10::elementSize(type);
  const bool whole = item > 0 && bytes % item == 0;
  return elements(data, whole ? bytes / item : bytes, at::TensorOptions().dtype(whole ? type : at::kByte),
                  std::move(keep));
}

at::Tensor first_elements(const SlotRecord& slot, at::ScalarType type) {
  const std::size_t item = c10::elementSize(type);
  if (slot.lost || item == 0) return {};
  const auto options = at::TensorOptions().dtype(type);
  if (slot.saved) return elements(slot.saved, slot.first_bytes / item, options, {});
  const c10::Storage memory = slot.saved_on_device.defined() ? slot.saved_on_device.storage() : slot.live;
  if (!memory) return {};
  const std::size_t bytes = std::min<std::size_t>(memory.nbytes(), slot.first_bytes);
  return at::empty({0}, options.device(memory.device()))
      .set_(memory, 0, {static_cast<std::int64_t>(bytes / item)}, {1});
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

bool lies_within_its_memory(const at::Tensor& tensor) {
  const auto held = tensor.storage().nbytes() / tensor.element_size();
  return reaches_within(tensor.sizes(), tensor.strides(), tensor.storage_offset(),
                        static_cast<std::int64_t>(held));
}

}  // namespace nanquest::record
