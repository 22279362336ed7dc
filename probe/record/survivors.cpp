#include "probe/record/survivors.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest::record {

std::vector<Survivor> survivors(const Step& step, std::size_t first) {
  std::vector<Survivor> found;
  for (std::uint32_t i = 0; i < step.slots.size(); ++i) {
    const SlotRecord& slot = step.slots[i];
    if (slot.writer == UINT32_MAX || slot.writer < first || !slot.initialised ||
        !at::isFloatingType(slot.type))
      continue;
    const auto memory = slot.storage.lock();
    if (!memory || !memory->nbytes()) continue;
    const auto elements = static_cast<std::int64_t>(memory->nbytes() / c10::elementSize(slot.type));
    found.push_back({at::empty({0}, at::TensorOptions().dtype(slot.type).device(slot.device))
                         .set_(c10::Storage(memory), 0, {elements}, {1}),
                     slot.writer, !slot.produced});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.op < b.op; });
  return found;
}

at::Tensor last_non_finite(const std::vector<Survivor>& written) {
  for (auto each = written.rbegin(); each != written.rend(); ++each) {
    // For one-byte formats LibTorch has only conversions.
    const at::Tensor& all = each->memory;
    const at::Tensor values = all.element_size() < 2 ? all.to(at::kFloat) : all;
    const at::Tensor bad = at::logical_or(at::isnan(values), at::isposinf(values)).nonzero();
    if (bad.numel() > 0) return all.select(0, bad.flatten()[0].item<std::int64_t>());
  }
  return {};
}

}  // namespace nanquest::record
