#include "replay/spike/batch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/trace/origins.h"
#include "probe/trace/samples.h"

namespace nanquest {
namespace {

bool is_contiguous(const TensorRow& row) {
  std::int64_t wanted = 1;
  for (std::size_t d = row.sizes.size(); d-- > 0;) {
    if (row.sizes[d] != 1 && row.strides[d] != wanted) return false;
    wanted *= row.sizes[d];
  }
  return true;
}

/// The first use of that memory as a tensor: a view of it says how samples lie in it.
std::optional<TensorId> first_read(const TraceGraph& graph, SlotId slot) {
  for (const TraceGraph::Read& read : graph.reads(slot))
    if (!graph.producer(read.row, read.op)) return read.row;
  return std::nullopt;
}

}  // namespace

StepBatch::StepBatch(const Lab& lab, const TwinRun& twin) : twin_(twin) {
  const SnapshotDoc& doc = lab.replayer().doc();
  has_before_ = twin.there() && static_cast<std::size_t>(doc.twin.ops) == doc.ops.size();
  if (!has_before_) return;
  find_parts(lab);
  count_samples(doc);
}

void StepBatch::find_parts(const Lab& lab) {
  const SnapshotDoc& doc = lab.replayer().doc();
  for (const TwinValue& value : doc.twin.values) {
    if (value.slot == kNone) {  // the host wrote it while the step ran: which sample it is, is not known
      parts_.clear();
      return;
    }
    const SlotId slot{value.slot};
    if (!comes_with_batch(get(doc, slot).origin)) continue;
    const auto row = first_read(lab.graph(), slot);
    auto before = twin_.values_of(slot);
    if (!row || !before) continue;
    const TensorRow& shape = lab.graph().tensor(*row);
    if (shape.sizes.empty() || !is_contiguous(shape)) continue;
    Part part{.slot = value.slot,
              .offset = shape.storage_offset,
              .count = 1,
              .first_dimension = shape.sizes.front(),
              .dimensions = shape.sizes.size(),
              .values_before = before->view({-1})};
    for (const std::int64_t size : shape.sizes) part.count *= size;
    if (part.count > 1 && part.offset + part.count <= part.values_before.numel())
      parts_.push_back(std::move(part));
  }
}

void StepBatch::count_samples(const SnapshotDoc& doc) {
  std::int64_t samples = batch_size(doc);
  if (samples == 0)
    for (const Part& part : parts_)
      samples = samples == 0 ? part.first_dimension : std::min(samples, part.first_dimension);
  const bool fits = std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    const bool flat = part.dimensions == 1 && samples > 0 && part.first_dimension % samples == 0;
    return part.first_dimension == samples || flat;
  });
  const bool named = doc.sample_ids.empty() || batch_size(doc) == samples ||
                     static_cast<std::int64_t>(doc.sample_ids.size()) == samples;
  samples_ = !parts_.empty() && fits && named && samples >= 2 ? samples : 0;
}

std::optional<RunOptions> StepBatch::all_before() const {
  RunOptions options;
  return twin_.put(options.edit) ? std::optional(std::move(options)) : std::nullopt;
}

RunOptions StepBatch::before(const std::vector<std::int64_t>& samples) const {
  RunOptions options;
  for (const Part& part : parts_) {
    const std::int64_t each = part.count / samples_;
    options.edit.slot_edit[part.slot] = [samples, each, offset = part.offset,
                                         from = part.values_before](at::Tensor& memory) {
      for (const std::int64_t sample : samples)
        memory.narrow(0, offset + sample * each, each).copy_(from.narrow(0, offset + sample * each, each));
    };
  }
  return options;
}

RunOptions StepBatch::alone(std::int64_t sample) const {
  RunOptions options;
  for (const Part& part : parts_) {
    const std::int64_t each = part.count / samples_;
    options.edit.slot_edit[part.slot] = [sample, each, offset = part.offset,
                                         samples = samples_](at::Tensor& memory) {
      const at::Tensor one = memory.narrow(0, offset + sample * each, each).clone();
      for (std::int64_t s = 0; s < samples; ++s) memory.narrow(0, offset + s * each, each).copy_(one);
    };
  }
  return options;
}

}  // namespace nanquest
