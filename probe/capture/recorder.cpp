#include "probe/capture/recorder.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/capture/arguments.h"
#include "probe/capture/recorder_parts.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/one_up.h"
#include "probe/trace/births.h"
#include "probe/trace/op_facts.h"

namespace nanquest {
namespace {

/// Copying as much costs no more than recording the op.
constexpr std::size_t kSmallBytes = 16 << 10;

bool is_reduced(const at::Tensor& t) {
  return t.is_floating_point() && t.element_size() <= 2;
}

/// The plain tensors that a sparse one is made of.
void inner_memory(const at::Tensor& t, std::vector<at::Tensor>& out) {
  if (t.is_sparse())
    out.insert(out.end(), {t._indices(), t._values()});
  else if (t.layout() == at::kSparseCsr || t.layout() == at::kSparseBsr)
    out.insert(out.end(), {t.crow_indices(), t.col_indices(), t.values()});
  else if (t.layout() == at::kSparseCsc || t.layout() == at::kSparseBsc)
    out.insert(out.end(), {t.ccol_indices(), t.row_indices(), t.values()});
}

}  // namespace

struct TraceRecorder::Frame : OpFrame {
  std::int32_t op = kNone;
  std::vector<at::Tensor> written;   // mutable arguments, held until the op is done
  std::vector<c10::IValue> inputs;   // see keep_inputs
  std::vector<at::Tensor> inner;     // memory inside written arguments that are no plain memory themselves
  std::vector<std::int32_t> unsure;  // rows of what a region read and perhaps wrote
  HiddenOverflows::ReaderPtr reader;
  bool inputs_finite = true;
  bool inputs_kept = true;           // `inputs` are still what the op read, once it has run
  std::vector<std::int32_t> unseen;  // rows of what it read that nobody has looked at yet
};

/// A tensor that an op reads and writes, as it is before: a copy where that costs little, or the first values
/// that are kept anyway. Undefined where neither is to be had.
at::Tensor TraceRecorder::before_written(const at::Tensor& tensor) {
  if (is_reduced(tensor) || tensor.nbytes() <= kSmallBytes) return tensor.detach().clone();
  const std::int32_t slot = can_record(tensor) ? slots_.find(tensor) : kNone;
  if (slot == kNone) return {};
  const SlotState& state = slots_.state(slot);
  if (state.generation > 0 || !state.saved.defined()) return {};
  return at::empty({0}, state.saved.options())
      .set_(state.saved.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

void TraceRecorder::keep_inputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> inputs,
                                Frame& frame) {
  frame.inputs.assign(inputs.begin(), inputs.end());
  if (frame.written.empty()) return;
  const auto kept = [&](const at::Tensor& t) {
    const bool changes = t.defined() && t.has_storage() &&
                         std::any_of(frame.written.begin(), frame.written.end(), [&](const at::Tensor& w) {
                           return w.storage().is_alias_of(t.storage());
                         });
    const at::Tensor before = changes ? before_written(t) : t;
    frame.inputs_kept = frame.inputs_kept && (before.defined() || !t.defined());
    return before;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (traits.argument_overwritten[i]) continue;
    if (inputs[i].isTensor()) {
      frame.inputs[i] = kept(inputs[i].toTensor());
    } else if (inputs[i].isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : inputs[i].toTensorVector()) list.push_back(kept(t));
      frame.inputs[i] = std::move(list);
    }
  }
}

TraceRecorder::TraceRecorder(Recording& recording, const RecordOptions& options)
    : recording_(recording), doc_(recording.doc), options_(options), slots_(recording.doc.slots) {}

std::unique_ptr<OpFrame> TraceRecorder::on_start(const OpTraits& traits,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
  const std::lock_guard lock(mutex_);
  auto frame = std::make_unique<Frame>();
  OpRow op;
  op.name = traits.name;
  op.overload = traits.overload;
  if (traits.seeded) op.flags |= kOpSeeded;
  if (traits.uninitialised) op.flags |= kOpUninitialised;
  if (traits.opaque) op.flags |= kOpOpaque;
  fill_context(op);  // before gradients are off: they tell a forward pass inside a node
  const at::NoGradGuard no_grad;
  if (traits.seeded) op.rng = save_generator(inputs);

  look_ahead_at_inputs(traits, inputs);
  std::vector<ArgRow> tokens;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool written = traits.argument_written[i];
    const bool blind = traits.argument_overwritten[i];
    flatten_argument(inputs[i], tokens, [&](const at::Tensor& t) {
      if (!t.defined()) return tensor_row(t, kNone, Look::nothing);
      if (!can_record(t)) {
        op.flags |= kOpOpaque;
        if (written) inner_memory(t, frame->inner);
        return tensor_row(t, kNone, Look::nothing);
      }
      const std::int32_t slot = slot_for_argument(t, blind || traits.awaits);
      if (!traits.awaits) settle(slot);
      link_maker(t, slot);
      if (written) save_outside(slot);
      const bool read = traits.argument_read[i] && slots_.state(slot).initialised;
      const std::int32_t row = tensor_row(t, slot,
                                          !read           ? Look::nothing
                                          : traits.opaque ? Look::values_and_hash
                                                          : Look::values);
      const std::int32_t stats = doc_.tensors[static_cast<std::size_t>(row)].stats;
      if (stats != kNone && doc_.stats[static_cast<std::size_t>(stats)].non_finite() > 0)
        frame->inputs_finite = false;
      if (!unseen_.empty() && unseen_.back() == row) frame->unseen.push_back(row);
      if (written) frame->written.push_back(t);
      if (traits.opaque && !traits.collective && !written) frame->unsure.push_back(row);
      return row;
    });
  }
  if (options_.scan) keep_inputs(traits, inputs, *frame);
  if (hidden_.any() && options_.scan && !traits.uninitialised) {  // such an op reads sizes only
    const bool can_repeat = !(traits.seeded || traits.opaque || traits.foreign || traits.collective ||
                              traits.awaits || (op.flags & kOpOpaque));
    frame->reader = hidden_.reads(traits.handle, traits.argument_written, can_repeat,
                                  std::vector<c10::IValue>(inputs.begin(), inputs.end()));
  }
  op.first_arg = static_cast<std::int32_t>(doc_.args.size());
  op.arg_count = static_cast<std::int32_t>(tokens.size());
  for (ArgRow& token : tokens) {
    if (token.kind == ArgKind::opaque) op.flags |= kOpOpaque;
    doc_.args.push_back(std::move(token));
  }
  frame->op = static_cast<std::int32_t>(doc_.ops.size());
  // A backward op's own frames are the engine's: where unwinding is dear, only those of a birth are worth it.
  const bool now = options_.stacks && !(op.phase == Phase::backward && Stack::dear());
  doc_.ops.push_back(std::move(op));
  stacks_.push_back(now ? Stack::gather() : nullptr);
  ready_.clear();
  return frame;
}

void TraceRecorder::add_written(OpRow& op, const at::Tensor& tensor, std::int32_t slot, std::int32_t row) {
  SlotState& state = slots_.state(slot);
  ++state.generation;
  if (op.flags & kOpUninitialised) {
    state.initialised = false;
  } else {
    state.initialised = true;
    const std::int32_t output = row - op.first_output;
    if (output < 0 || !is_scratch(op.name, static_cast<std::size_t>(output)))
      doc_.tensors[static_cast<std::size_t>(row)].stats = stats_for(tensor, slot, Look::values_and_hash);
  }
  if (state.shared) state.shared_hash = hash_of_storage(tensor.storage());
  doc_.written.push_back(row);
  ++op.written_count;
}

void TraceRecorder::on_end(const OpTraits& traits, OpFrame& base, c10::ArrayRef<const c10::IValue> outputs) {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  auto& frame = static_cast<Frame&>(base);
  look_ahead_at_outputs(traits, outputs, frame.written);
  OpRow op = doc_.ops[static_cast<std::size_t>(frame.op)];
  op.first_written = static_cast<std::int32_t>(doc_.written.size());
  std::vector<std::int32_t> returned, created;           // rows; slots
  std::vector<std::pair<std::string, at::Tensor>> made;  // where in the file its values would lie
  OpResults results{{}, frame.written};
  for (std::size_t i = 0; i < outputs.size(); ++i)
    each_tensor(outputs[i], [&](const at::Tensor& t) {
      const std::string name = std::to_string(returned.size());
      if (!can_record(t)) {
        if (t.defined()) op.flags |= kOpOpaque;
        returned.push_back(tensor_row(t, kNone, Look::nothing));
        results.returned.emplace_back();
        return;
      }
      std::int32_t slot = slots_.find(t);
      if (slot == kNone) created.push_back(slot = slots_.add(t, /*produced=*/true));
      // Several parts of one new storage (unbind of a nested tensor) are all new.
      const bool fresh = std::find(created.begin(), created.end(), slot) != created.end();
      const std::int32_t row = tensor_row(t, slot, Look::nothing);
      returned.push_back(row);
      results.returned.push_back(fresh ? t : at::Tensor());
      if (!fresh) return;
      op.first_output = returned.front();
      made.emplace_back(name, t);
      write(traits, op, frame.op, name, t, slot, row);
    });
  for (const at::Tensor& t : frame.written) {
    const std::int32_t slot = slots_.find(t);
    const bool is_made =
        std::any_of(made.begin(), made.end(), [&](const auto& m) { return m.second.is_same(t); });
    if (slot == kNone || is_made) continue;
    Slot& slot_row = doc_.slots[static_cast<std::size_t>(slot)];
    slot_row.bytes = std::max<std::uint64_t>(slot_row.bytes, t.storage().nbytes());
    const std::string name = std::string("w").append(std::to_string(op.written_count));
    made.emplace_back(name, t);
    write(traits, op, frame.op, name, t, slot, tensor_row(t, slot, Look::nothing));
  }
  for (const std::int32_t before : frame.unsure) {
    const at::Tensor t = rewritten(before);
    if (!t.defined()) continue;
    const std::int32_t slot = doc_.tensors[static_cast<std::size_t>(before)].slot;
    const std::string name = std::string("w").append(std::to_string(op.written_count));
    made.emplace_back(name, t);
    add_written(op, t, slot, tensor_row(t, slot, Look::nothing));
    slots_.state(slot).writer = frame.op;
  }
  for (const at::Tensor& t : frame.inner)
    if (const std::int32_t slot = slots_.find(t); slot != kNone) slots_.state(slot).initialised = false;
  // Rows of returned tensors must be one range: those of written arguments came after them, opaque parts
  // included.
  op.first_output = returned.empty() ? static_cast<std::int32_t>(doc_.tensors.size()) : returned.front();
  op.output_count = static_cast<std::int32_t>(returned.size());
  if (op.written_count == 0) op.flags |= kOpViewOnly;
  if (outputs.empty() && !traits.returns.empty()) op.flags |= kOpFailed;
  if (((op.flags & kOpOpaque) || traits.foreign) && !traits.collective)
    for (const auto& [name, t] : made) keep_value(op, opaque_path(frame.op, name), t);
  link_forward(op, outputs, frame.op);
  hidden_.after(std::move(frame.reader), results);
  judge_birth(traits, frame, op, results);
  doc_.ops[static_cast<std::size_t>(frame.op)] = std::move(op);
  ready_.clear();
}

bool TraceRecorder::read_non_finite(const Frame& frame) {
  for (const std::int32_t row : frame.unseen) {
    const std::int32_t& stats = doc_.tensors[static_cast<std::size_t>(row)].stats;
    if (stats == kNone) look_at_first_values(row);
    if (stats != kNone && doc_.stats[static_cast<std::size_t>(stats)].non_finite() > 0) return true;
  }
  return false;
}

void TraceRecorder::judge_birth(const OpTraits& traits, Frame& frame, OpRow& op, const OpResults& made) {
  if (!frame.inputs_finite || !can_be_birth(op.flags)) return;
  bool bad = false;
  for (std::int32_t i = 0; i < op.written_count; ++i) {
    const std::int32_t row = doc_.written[static_cast<std::size_t>(op.first_written + i)];
    const std::int32_t stats = doc_.tensors[static_cast<std::size_t>(row)].stats;
    bad = bad || (stats != kNone && doc_.stats[static_cast<std::size_t>(stats)].non_finite() > 0);
  }
  if (!bad || read_non_finite(frame)) return;
  op.flags |= kOpBirth;
  std::shared_ptr<Stack>& stack = stacks_[static_cast<std::size_t>(frame.op)];
  if (!stack && options_.stacks) stack = Stack::gather();
  // A stranger's kernel may take no other type than it was given, and what it does beside is its business.
  if (traits.foreign || traits.seeded || !frame.inputs_kept || births_judged_++ >= kMaxBirthsJudged) return;
  const c10::FunctionSchema& schema = traits.handle.schema();
  const auto up = type_one_up(schema, frame.inputs);
  if (!up) return;
  std::optional<OpResults> above;
  try {
    above = run_raised(traits.handle, traits.argument_written,
                       raised(schema, traits.argument_written, frame.inputs, *up));
  } catch (const std::exception&) {  // memory is short: nobody knows
  }
  if (!above) return;
  const bool finite = one_up_of(*above) == OneUp::finite;
  op.flags |= finite ? kOpBirthFiniteAbove : kOpBirthStays;
  if (finite) hidden_.begins(frame.op, made, *above);
}

void TraceRecorder::flag_hidden_overflows() {
  const std::lock_guard lock(mutex_);
  const auto flag = [&](const HiddenOverflows::Ops& ops, OpFlag what) {
    for (const std::int32_t op : ops) doc_.ops[static_cast<std::size_t>(op)].flags |= what;
  };
  flag(hidden_.harmful(), kOpHidesDamage);
  flag(hidden_.harmless(), kOpHidesNothing);
}

void TraceRecorder::on_error(const char* what) {
  const std::lock_guard lock(mutex_);
  recording_.notes.push_back(std::string("an op was not recorded: ") + what);
}

}  // namespace nanquest
