// ValueWatch: which op made non-finite values from finite ones, and what became of overflows that other ops
// hid.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/one_up.h"
#include "probe/tensor/sparse_values.h"
#include "probe/trace/births.h"

namespace nanquest::record {
namespace {

/// Copying this much costs no more than recording the op.
constexpr std::size_t kSmallBytes = 16 << 10;

bool is_infinite_number(const c10::IValue& value) {
  return value.isDouble() && std::isinf(value.toDouble());
}

bool is_reduced(const at::Tensor& t) {
  return t.is_floating_point() && t.element_size() <= 2;
}

}  // namespace

at::Tensor ValueWatch::before_written(const at::Tensor& tensor, bool asked) {
  if (!tensor.is_cpu() && !asked) return {};  // nothing asks before the op is long over
  if (is_reduced(tensor) || tensor.nbytes() <= kSmallBytes) return tensor.detach().clone();
  const std::uint32_t slot =
      can_record(tensor) ? step_.slots.find(tensor.storage().unsafeGetStorageImpl()) : SlotIndex::kMissing;
  if (slot == SlotIndex::kMissing || of(slot).generation > 0) return {};
  const SlotRecord& record = step_.slots[slot];
  if (!record.saved && !record.saved_on_device.defined()) return {};
  const at::Tensor first = first_elements(record, tensor.scalar_type());
  if (!first.defined() ||
      !reaches_within(tensor.sizes(), tensor.strides(), tensor.storage_offset(), first.numel()))
    return {};
  return first.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

void ValueWatch::keep_inputs(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs,
                             const std::vector<at::Tensor>& written, WatchedOp& watched) {
  watched.inputs.assign(inputs.begin(), inputs.end());
  if (written.empty()) return;
  const auto kept = [&](const at::Tensor& t) {
    const at::Tensor values = values_standing_for(t);
    const at::Tensor& memory = values.defined() ? values : t;
    const bool changes = memory.defined() && memory.has_storage() &&
                         std::any_of(written.begin(), written.end(), [&](const at::Tensor& w) {
                           return w.storage().is_alias_of(memory.storage());
                         });
    at::Tensor before = !changes ? t : values.defined() ? at::Tensor() : before_written(t, watched.asked);
    watched.inputs_kept = watched.inputs_kept && (before.defined() || !t.defined());
    return before;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (op.argument_overwritten[i]) continue;
    if (inputs[i].isTensor()) {
      watched.inputs[i] = kept(inputs[i].toTensor());
    } else if (inputs[i].isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : inputs[i].toTensorVector()) list.push_back(kept(t));
      watched.inputs[i] = std::move(list);
    }
  }
}

void ValueWatch::before_op(const OpTraits& op, WatchedOp& watched, c10::ArrayRef<const c10::IValue> inputs,
                           const std::vector<at::Tensor>& written, bool opaque) {
  ready_.clear();
  const at::NoGradGuard no_grad;
  watched.asked = open_.asks(step_.ops.back());
  keep_inputs(op, inputs, written, watched);
  watched.made.written = written;
  if (!hidden_->any() || op.uninitialised) return;  // such an op reads sizes only
  const bool can_repeat = !(op.seeded || op.opaque || op.foreign || op.collective || op.awaits || opaque);
  watched.reader = hidden_->reads(op.handle, op.argument_written, can_repeat,
                                  std::vector<c10::IValue>(inputs.begin(), inputs.end()));
}

bool ValueWatch::read_non_finite(const std::vector<std::size_t>& unseen) {
  for (const std::size_t seen : unseen) {
    if (seen_[seen].stats == kNone) look_at_first_values(seen);
    settle();
    if (non_finite(seen_[seen].stats)) return true;
  }
  return false;
}

bool ValueWatch::is_birth(std::uint32_t op, bool inputs_finite, bool made_bad,
                          const std::vector<std::size_t>& unseen) {
  if (!made_bad) return false;
  bad_ops_.push_back(op);
  return inputs_finite && can_be_birth(op_flags(step_.ops[op])) && !read_non_finite(unseen);
}

void ValueWatch::after_op(const OpTraits& op, WatchedOp& watched, std::uint32_t index) {
  ready_.clear();
  const at::NoGradGuard no_grad;
  hidden_->after(std::move(watched.reader), watched.made);
  const bool waits = !watched.waiting_in.empty() || !watched.waiting_out.empty();
  if (waits && watched.asked) {
    settle();
    watched.inputs_finite = watched.inputs_finite && !any_bad(watched.waiting_in);
    watched.made_bad = watched.made_bad || any_bad(watched.waiting_out);
  } else if (waits) {
    unjudged_.push_back({index, watched.inputs_finite, watched.made_bad, std::move(watched.waiting_in),
                         std::move(watched.waiting_out), std::move(watched.unseen)});
    if (later_.full()) settle();
    return;
  }
  if (!is_birth(index, watched.inputs_finite, watched.made_bad, watched.unseen)) return;
  flags_of(index) |= kOpBirth;
  if (stacks_) {
    if (step_.stacks.size() <= index) step_.stacks.resize(index + 1);
    if (!step_.stacks[index]) step_.stacks[index] = Stack::gather();
  }
  // A foreign kernel may accept no other type than it was given, and may have side effects.
  if (op.foreign || op.seeded || !watched.inputs_kept) return;
  if (std::any_of(watched.inputs.begin(), watched.inputs.end(), is_infinite_number)) {
    flags_of(index) |= kOpBirthStays;
    return;
  }
  if (!births_.worth(op.name)) return;
  const c10::FunctionSchema& schema = op.handle.schema();
  const auto up = FormatsUsed(schema, watched.inputs).one_up();
  if (!up) return;
  std::optional<OpResults> above;
  try {
    above =
        run_raised(op.handle, op.argument_written, raised(schema, op.argument_written, watched.inputs, *up));
  } catch (const std::exception&) {  // out of memory: unknown
  }
  if (!above) return;
  const OneUp judged = one_up_of(*above);
  if (judged == OneUp::unknown) return;
  const bool finite = judged == OneUp::finite;
  births_.judged(op.name, finite);
  flags_of(index) |= finite ? kOpBirthFiniteAbove : kOpBirthStays;
  if (finite) hidden_->begins(static_cast<std::int32_t>(index), watched.made, *above);
}

void ValueWatch::flag_hidden_overflows() {
  for (const std::int32_t op : hidden_->harmful()) flags_of(static_cast<std::uint32_t>(op)) |= kOpHidesDamage;
  for (const std::int32_t op : hidden_->harmless())
    flags_of(static_cast<std::uint32_t>(op)) |= kOpHidesNothing;
}

void ValueWatch::rest() {
  settle();
  flag_hidden_overflows();
  ready_.clear();
  hidden_.emplace();
}

bool ValueWatch::left_non_finite(std::size_t first, Phase phase) const {
  return std::any_of(bad_ops_.begin(), bad_ops_.end(), [&](std::uint32_t op) {
    return op >= first && step_.ops[op].phase == phase && left_non_finite(op);
  });
}

bool ValueWatch::left_non_finite(std::uint32_t index) const {
  const OpRecord& op = step_.ops[index];
  Reader reader(step_.words.at(op.first_output));
  for (std::uint32_t i = 0; i < op.outputs + op.written; ++i) {
    const std::uint32_t token = step_.words.place_of(reader);
    const Header header = reader.header();
    (void)reader.numbers(words_after(header));
    if (!header.slot_known() || !non_finite(stats_at(token))) continue;
    const SlotRecord& slot = step_.slots[static_cast<std::uint32_t>(header.number)];
    if (slot.writer == index && !slot.storage.expired()) return true;
  }
  return false;
}

}  // namespace nanquest::record
