#include "probe/step/left_behind.h"

#include <algorithm>
#include <vector>

#include "probe/record/tables.h"
#include "probe/step/weight_watch.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"
#include "probe/trace/culprit.h"

namespace nanquest {
namespace {

ValueKinds kinds_in(const at::Tensor& values) {
  const auto stats = values.defined() ? stats_of(values, /*hash=*/false) : std::nullopt;
  return stats ? value_kinds({stats->nan, stats->pos_inf, stats->neg_inf}) : ValueKinds{0};
}

/// So many ops back an infinite constant is looked for.
constexpr std::size_t kOpsBack = 64;

/// Whether an infinite constant is among what was written there last: nobody has looked at values, so it may
/// be meant.
bool from_a_constant(const TraceGraph& graph, SlotId slot) {
  if (graph.writes(slot).empty()) return false;
  std::vector<OpId> ops{graph.writes(slot).back().op};
  for (std::size_t i = 0; i < ops.size() && i < kOpsBack; ++i) {
    if (bad_constants(graph.doc(), ops[i]).infinite) return true;
    for (const TensorId row : graph.reads(ops[i]))
      if (const OpId maker = graph.producer(row, ops[i]);
          maker && std::find(ops.begin(), ops.end(), maker) == ops.end())
        ops.push_back(maker);
  }
  return false;
}

/// Whether infinities in the slot were put in on purpose, as far as the step's record tells.
bool meant(Recorder& recorder, record::Step& step, std::uint32_t slot, const std::string& name,
           const at::Tensor& buffer) {
  StepTables tables(recorder, step);
  StepNames names;
  names.buffers = named_memory({{name, buffer}});
  tables.build(names);
  SnapshotDoc& doc = tables.recording.doc;
  return step.watch ? !find_culprit(doc) : from_a_constant(TraceGraph(doc), SlotId{slot});
}

}  // namespace

std::string spoiled_buffer(Recorder& recorder, const NamedTensors& buffers, bool all) {
  record::Step* const step = recorder.current();
  if (!step || !step->usable) return "";
  std::int64_t elements = 0;
  for (const auto& [name, buffer] : buffers) {
    if (!buffer.defined() || !is_plain(buffer) || !buffer.is_floating_point()) continue;
    const c10::StorageImpl* storage = buffer.storage().unsafeGetStorageImpl();
    if (!recorder.wrote(storage)) continue;
    const std::uint32_t slot = step->slots.find(storage);
    elements += buffer.numel();
    if (!all && !worth_every_step(elements, buffer.is_cpu())) continue;
    ValueKinds kinds = kinds_in(buffer);
    if (!kinds) continue;
    kinds &= static_cast<ValueKinds>(~kinds_in(StepTables(recorder, *step).first_value(storage)));
    if (!kinds || (!(kinds & kKindNan) && meant(recorder, *step, slot, name, buffer))) continue;
    return name;
  }
  return "";
}

}  // namespace nanquest
