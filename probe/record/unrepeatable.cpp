#include "probe/record/unrepeatable.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/tokens.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/sparse_values.h"
#include "probe/trace/collectives.h"
#include "probe/trace/op_facts.h"

namespace nanquest::record {
namespace {

/// Whether an op's result may stay in the program's memory instead of being copied: the step allocated that
/// memory, and a kernel of LibTorch, which keeps no reference, wrote it. On a device a copy is a launch and
/// takes memory. On a CPU lent bytes must be checked for writes that no op shows, so a copy is simpler.
bool may_stay(const OpRecord& op, const SlotRecord& slot, const at::Tensor& t) {
  return slot.produced && !op.opaque && !op.traits->foreign && !t.is_cpu();
}

}  // namespace

bool draws_on_device(const Step& step, const OpRecord& op) {
  return op.generator != kNone && !step.generators[static_cast<std::size_t>(op.generator)].on_cpu;
}

void keep_outputs(Step& step, std::uint32_t op, std::uint32_t first_new,
                  c10::ArrayRef<const c10::IValue> outputs, const std::vector<at::Tensor>& written) {
  const at::NoGradGuard no_grad;
  const OpRecord& record = step.ops[op];
  const bool drawn = draws_on_device(step, record);
  const auto keep_or_lend = [&](OutputPlace place, const at::Tensor& t, std::uint32_t slot) {
    if (may_stay(record, step.slots[slot], t))
      step.kept.lend(place, t.detach());
    else
      step.kept.keep(place, t);
  };
  std::uint32_t number = 0, entry = record.fresh;
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& given) {
      const std::uint32_t mine = number++;
      const at::Tensor values =
          given.defined() && !can_record(given) ? values_standing_for(given) : at::Tensor();
      const at::Tensor& t = values.defined() ? values : given;
      if (!t.defined() || !can_record(t) || (drawn && !tells_what_was_drawn(record.traits->name, mine)))
        return;
      const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
      if (slot != SlotIndex::kMissing && slot >= first_new) keep_or_lend({op, mine, false}, t, slot);
    });
  for (const at::Tensor& t : written)
    if (const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
        slot != SlotIndex::kMissing)
      keep_or_lend({op, entry++, true}, t, slot);
}

void keep_later(Step& step, std::uint32_t op, const at::Tensor& tensor, std::uint32_t slot,
                std::uint32_t token, bool argument) {
  const OpRecord& record = step.ops[op];
  step.slots[slot].late = true;
  const std::uint32_t number = argument ? record.fresh + record.written : record.outputs - 1;
  step.late.push_back({{op, number, argument}, slot, token, step.slots.size(), tensor.storage()});
  if (step.watch) step.watch->will_write(slot, token);
}

void settle(Step& step, std::uint32_t slot) {
  if (!step.slots[slot].late) return;
  step.slots[slot].late = false;
  const at::NoGradGuard no_grad;
  // Copying may free memory that the program waits for: the list is taken apart first.
  std::vector<LateOutput> ready;
  std::erase_if(step.late, [&](LateOutput& late) {
    if (late.slot != slot) return false;
    ready.push_back(std::move(late));
    return true;
  });
  for (const LateOutput& late : ready) {
    const std::uint64_t* const token = step.words.at(late.token);
    const auto type = static_cast<at::ScalarType>(Reader(token).header().scalar_type);
    const auto count = static_cast<std::int64_t>(late.storage.nbytes() / c10::elementSize(type));
    const at::Tensor memory = at::empty({0}, at::TensorOptions().dtype(type).device(late.storage.device()))
                                  .set_(late.storage, 0, {count}, {1});
    const at::Tensor tensor = view_at(token, memory);
    if (!tensor.defined()) continue;
    step.kept.keep_brought(late.place, tensor, gathers(step.ops[late.place.op].traits->name),
                           step.slots[slot].produced);
    if (step.watch) step.watch->wrote_late(tensor, slot, late.token);
  }
}

void settle_all(Step& step) {
  for (std::uint32_t slot = 0; slot < step.slots.size(); ++slot) settle(step, slot);
}

bool finishes_collective(const Step& step, const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (step.late.empty() || !op.moves || !inputs[0].isTensor() || !inputs[1].isTensor()) return false;
  const at::Tensor &to = inputs[0].toTensor(), &from = inputs[1].toTensor();
  if (!to.defined() || !from.defined() || !can_record(to) || !can_record(from)) return false;
  const std::uint32_t target = step.slots.find(to.storage().unsafeGetStorageImpl());
  const std::uint32_t source = step.slots.find(from.storage().unsafeGetStorageImpl());
  return std::any_of(step.late.begin(), step.late.end(), [&](const LateOutput& late) {
    return late.slot == target && source >= late.known &&
           (source == SlotIndex::kMissing || !step.slots[source].produced);
  });
}

}  // namespace nanquest::record
