#include "probe/record/file_references.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "probe/snapshot/file_mapping.h"
#include "probe/tensor/file_sources.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest::record {
namespace {

/// What a step only reads and no other file of the run has: batch, moments and gradients belong to the
/// incident.
bool may_lie_elsewhere(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::buffer || origin == SlotOrigin::external;
}

std::vector<bool> trained_slots(const SnapshotDoc& doc) {
  std::vector<bool> trained(doc.slots.size());
  for (const TensorRow& row : doc.tensors)
    if (row.slot != kNone && row.flags & kTensorRequiresGrad)
      trained[static_cast<std::size_t>(row.slot)] = true;
  return trained;
}

}  // namespace

void refer_to_files(Recording& recording, const Step& step, Views sources) {
  const std::vector<bool> trained = trained_slots(recording.doc);
  for (std::uint32_t i = 0; i < step.slots.size(); ++i)
    if (const std::string& path = recording.doc.slots[i].data; !path.empty()) sources[path] = {i, 0};
  const FileMappings mappings = FileMappings::now();
  std::erase_if(recording.data, [&](const auto& data) {
    const auto& [path, tensor] = data;
    const auto source = sources.find(path);
    if (source == sources.end()) return false;
    const auto [slot, offset] = source->second;
    if (trained[slot] || !may_lie_elsewhere(recording.doc.slots[slot].origin)) return false;
    // The mapped file of the memory itself, or of what it was copied from: `tensor` may be a copy that the
    // recorder made.
    const auto storage = step.slots[slot].storage.lock();
    const auto type = dtype_of(tensor.scalar_type());
    const std::byte* const memory = storage ? memory_behind(*storage) : nullptr;
    if (memory == nullptr || !type || !tensor.is_contiguous()) return false;
    const auto place = mappings.find(memory + offset, tensor.nbytes());
    const auto hash = place ? hash_if_same(*place, tensor.const_data_ptr(), tensor.nbytes()) : std::nullopt;
    if (!hash) return false;
    FileReference reference;
    static_cast<FilePlace&>(reference) = *place;
    reference.path = path;
    reference.dtype = *type;
    reference.shape = tensor.sizes().vec();
    reference.checksum = *hash;
    recording.references.push_back(std::move(reference));
    return true;
  });
}

}  // namespace nanquest::record
