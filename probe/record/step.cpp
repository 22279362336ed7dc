#include "probe/record/step.h"

#include "probe/record/value_watch.h"

namespace nanquest::record {

std::uint32_t op_flags(const OpRecord& op) {
  std::uint32_t flags = 0;
  if (op.traits->seeded) flags |= kOpSeeded;
  if (op.traits->uninitialised) flags |= kOpUninitialised;
  if (op.opaque) flags |= kOpOpaque;
  if (op.recompute) flags |= kOpRecompute;
  if (!op.ended) return flags;
  if (op.fresh + op.written == 0) flags |= kOpViewOnly;
  if (op.returned_nothing && !op.traits->returns.empty()) flags |= kOpFailed;
  return flags;
}

Step::Step() = default;
Step::~Step() = default;

void Step::let_go() {
  usable = talks = at_once = false;
  updated_at = UINT32_MAX;
  watch.reset();
  slots.clear();
  outside.clear();
  values.clear();
  host_writes.clear();
  generators.clear();
  kept.clear();
  late.clear();
  nodes.clear();
  reads.clear();
  marks.clear();
  notes.clear();
  held = look_at = 0;
}

void Step::clear() {
  let_go();
  backward_at = UINT32_MAX;
  ops.clear();
  words.clear();
}

std::size_t Step::memory() const {
  return ops.capacity() * sizeof(OpRecord) + words.capacity_bytes() + slots.capacity_bytes() +
         values.capacity() + host_writes.capacity() * sizeof(HostWrite) +
         generators.capacity() * sizeof(GeneratorState) + nodes.capacity() * sizeof(MadeNode) +
         stacks.capacity() * sizeof(stacks[0]);
}

}  // namespace nanquest::record
