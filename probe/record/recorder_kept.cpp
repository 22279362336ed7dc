// Recorder: values of ops that may not be repeatable, and of collectives, which may write after they have
// returned.
#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/record/memory_views.h"
#include "probe/record/recorder.h"
#include "probe/record/recorder_frame.h"
#include "probe/record/rows.h"
#include "probe/record/tokens.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/sparse_values.h"
#include "probe/trace/collectives.h"
#include "probe/trace/op_facts.h"

namespace nanquest {

using record::OpRecord;
using record::SlotIndex;
using record::Step;

namespace {

void count(Step& step, const at::Tensor& value) {
  step.opaque_bytes += value.nbytes();
  if (!value.is_cpu()) step.kept_on_device += value.nbytes();
}

void keep(Step& step, record::OutputPlace place, const at::Tensor& t) {
  // Queued on the stream: nothing waits for it.
  at::Tensor copy = t.detach().clone(at::MemoryFormat::Contiguous);
  count(step, copy);
  step.opaque.push_back({place, std::move(copy)});
}

void lend(Step& step, record::OutputPlace place, const at::Tensor& t, std::uint64_t hash = 0) {
  count(step, t);
  step.lent.add(t);
  step.opaque.push_back({place, t, hash});
}

/// Whether an op's result may stay in the program's memory instead of being copied: the step allocated that
/// memory, and a kernel of LibTorch, which keeps no reference, wrote it. On a device a copy is a launch and
/// takes memory. On a CPU lent bytes must be checked for writes that no op shows, so a copy is simpler.
bool may_stay(const OpRecord& op, const record::SlotRecord& slot, const at::Tensor& t) {
  return slot.produced && !op.opaque && !op.traits->foreign && !t.is_cpu();
}

/// Below this size copying is faster than looking for an equal value.
constexpr std::size_t kWorthSharing = std::size_t{1} << 16;
/// Samples of 8 bytes each: if one in a hundred bf16 weights differs, one of them shows it.
constexpr std::size_t kSamples = 1024;

/// What a collective delivered. Sharded weights are gathered for the forward pass and again for the backward
/// pass; the record holds one value for both. `stays`: the step allocated this memory, so the program frees
/// it when done.
void keep_brought(Step& step, record::OutputPlace place, const at::Tensor& t, bool gathered, bool stays) {
  if (t.nbytes() < kWorthSharing) return keep(step, place, t);
  std::uint64_t hash = 0;
  if (gathered && t.is_cpu() && t.is_contiguous()) {
    hash = record::hash_of_samples(t.data_ptr(), t.nbytes(), kSamples);
    const auto known = std::find_if(step.opaque.rbegin(), step.opaque.rend(), [&](const auto& output) {
      return output.hash == hash && output.value.scalar_type() == t.scalar_type() &&
             output.value.sizes() == t.sizes();
    });
    if (known != step.opaque.rend()) {
      step.opaque.push_back({place, known->value, hash});
      return;
    }
  }
  if (stays) {
    lend(step, place, t, hash);
  } else {
    keep(step, place, t);
    step.opaque.back().hash = hash;
  }
}

}  // namespace

/// Random numbers drawn on a device can't be drawn again on another one.
bool Recorder::draws_on_device(const OpRecord& op) const {
  return op.generator != kNone && !into_->generators[static_cast<std::size_t>(op.generator)].on_cpu;
}

void Recorder::keep_values(const Frame& frame, c10::ArrayRef<const c10::IValue> outputs) {
  const at::NoGradGuard no_grad;
  Step& step = *into_;
  const OpRecord& op = step.ops[frame.op];
  const bool drawn = draws_on_device(op);
  const auto keep_or_lend = [&](record::OutputPlace place, const at::Tensor& t, std::uint32_t slot) {
    if (may_stay(op, step.slots[slot], t))
      lend(step, place, t.detach());
    else
      keep(step, place, t);
  };
  std::uint32_t number = 0, entry = op.fresh;
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& given) {
      const std::uint32_t mine = number++;
      const at::Tensor values =
          given.defined() && !can_record(given) ? values_standing_for(given) : at::Tensor();
      const at::Tensor& t = values.defined() ? values : given;
      if (!t.defined() || !can_record(t) || (drawn && !tells_what_was_drawn(op.traits->name, mine))) return;
      const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
      if (slot != SlotIndex::kMissing && slot >= frame.known) keep_or_lend({frame.op, mine, false}, t, slot);
    });
  for (const at::Tensor& t : frame.written)
    if (const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
        slot != SlotIndex::kMissing)
      keep_or_lend({frame.op, entry++, true}, t, slot);
}

void Recorder::keep_later(Frame& frame, const at::Tensor& tensor, std::uint32_t slot, std::uint32_t token,
                          bool argument) {
  Step& step = *into_;
  const OpRecord& op = step.ops[frame.op];
  step.slots[slot].late = true;
  const std::uint32_t number = argument ? op.fresh + op.written : op.outputs - 1;
  step.late.push_back({{frame.op, number, argument}, slot, token, step.slots.size(), tensor.storage()});
  if (step.watch) step.watch->will_write(slot, token);
}

void Recorder::settle(std::uint32_t slot) {
  Step& step = *current_;
  if (!step.slots[slot].late) return;
  step.slots[slot].late = false;
  const at::NoGradGuard no_grad;
  // Copying may free memory that the program waits for: the list is taken apart first.
  std::vector<record::LateOutput> ready;
  std::erase_if(step.late, [&](record::LateOutput& late) {
    if (late.slot != slot) return false;
    ready.push_back(std::move(late));
    return true;
  });
  for (const record::LateOutput& late : ready) {
    const std::uint64_t* const token = step.words.at(late.token);
    const auto type = static_cast<at::ScalarType>(record::Reader(token).header().scalar_type);
    const auto count = static_cast<std::int64_t>(late.storage.nbytes() / c10::elementSize(type));
    const at::Tensor memory = at::empty({0}, at::TensorOptions().dtype(type).device(late.storage.device()))
                                  .set_(late.storage, 0, {count}, {1});
    const at::Tensor tensor = record::view_at(token, memory);
    if (!tensor.defined()) continue;
    keep_brought(step, late.place, tensor, gathers(step.ops[late.place.op].traits->name),
                 step.slots[slot].produced);
    if (step.watch) step.watch->wrote_late(tensor, slot, late.token);
  }
}

void Recorder::call_in(const c10::StorageImpl* storage) {
  const at::NoGradGuard no_grad;
  for (const auto& step : all_) {
    if (step->lent.empty()) continue;
    if (std::string lost = step->lent.call_in(storage, step->opaque); !lost.empty())
      step->notes.push_back(std::move(lost));
  }
}

void Recorder::settle_all() {
  for (std::uint32_t slot = 0; slot < current_->slots.size(); ++slot) settle(slot);
}

}  // namespace nanquest
