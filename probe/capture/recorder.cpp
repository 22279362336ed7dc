#include "probe/capture/recorder.h"

#include <ATen/ATen.h>

#include "probe/capture/arguments.h"
#include "probe/capture/birth.h"
#include "probe/capture/recorder_parts.h"

namespace nanquest {
namespace {

/// A step that went wrong at one place has few births; a step that went wrong everywhere is judged by its first ones.
constexpr int kMaxBirthsJudged = 64;

bool is_reduced(const at::Tensor& t) { return t.is_floating_point() && t.element_size() <= 2; }

}  // namespace

struct TraceRecorder::Frame : OpFrame {
  std::int32_t op = kNone;
  std::vector<at::Tensor> written;       // mutable arguments, held until the op is done
  std::vector<c10::IValue> inputs;       // as the op got them; reduced-precision mutable ones cloned
  bool inputs_finite = true;
};
TraceRecorder::TraceRecorder(Recording& recording, const RecordOptions& options)
    : recording_(recording), doc_(recording.doc), options_(options), slots_(recording.doc.slots) {}
std::unique_ptr<OpFrame> TraceRecorder::on_start(const OpTraits& traits, c10::ArrayRef<const c10::IValue> inputs) {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  auto frame = std::make_unique<Frame>();
  OpRow op;
  op.name = traits.name;
  op.overload = traits.overload;
  if (traits.seeded) op.flags |= kOpSeeded;
  if (traits.uninitialised) op.flags |= kOpUninitialised;
  fill_context(op);
  if (traits.seeded) op.rng = save_generator(inputs);

  std::vector<ArgRow> tokens;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool written = traits.argument_written[i];
    const bool blind = written && (traits.handle.schema().arguments()[i].is_out() || overwrites_blindly(traits.name));
    bool clone = false;
    flatten_argument(inputs[i], tokens, [&](const at::Tensor& t) {
      if (!t.defined()) return tensor_row(t, kNone, false);
      if (!can_record(t)) {
        op.flags |= kOpOpaque;
        return tensor_row(t, kNone, false);
      }
      const std::int32_t slot = slot_for_argument(t, blind);
      if (written) save_outside(slot);
      const bool read = !blind && slots_.state(slot).initialised;
      const std::int32_t row = tensor_row(t, slot, read);
      const std::int32_t stats = doc_.tensors[static_cast<std::size_t>(row)].stats;
      if (stats != kNone && doc_.stats[static_cast<std::size_t>(stats)].non_finite() > 0) frame->inputs_finite = false;
      if (written) frame->written.push_back(t);
      clone = clone || (written && is_reduced(t));
      return row;
    });
    frame->inputs.push_back(clone && inputs[i].isTensor() ? c10::IValue(inputs[i].toTensor().detach().clone()) : inputs[i]);
  }
  op.first_arg = static_cast<std::int32_t>(doc_.args.size());
  op.arg_count = static_cast<std::int32_t>(tokens.size());
  for (ArgRow& token : tokens) {
    if (token.kind == ArgKind::opaque) op.flags |= kOpOpaque;
    doc_.args.push_back(std::move(token));
  }
  frame->op = static_cast<std::int32_t>(doc_.ops.size());
  doc_.ops.push_back(std::move(op));
  stacks_.push_back(options_.stacks ? Stack::gather() : nullptr);
  return frame;
}

void TraceRecorder::add_written(OpRow& op, const at::Tensor& tensor, std::int32_t slot, std::int32_t row) {
  SlotState& state = slots_.state(slot);
  ++state.generation;
  if (op.flags & kOpUninitialised) {
    state.initialised = false;
  } else {
    state.initialised = true;
    doc_.tensors[static_cast<std::size_t>(row)].stats = stats_for(tensor, slot);
  }
  doc_.written.push_back(row);
  ++op.written_count;
}

void TraceRecorder::on_end(const OpTraits& traits, OpFrame& base, c10::ArrayRef<const c10::IValue> outputs) {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  auto& frame = static_cast<Frame&>(base);
  OpRow op = doc_.ops[static_cast<std::size_t>(frame.op)];
  op.first_written = static_cast<std::int32_t>(doc_.written.size());
  std::vector<std::int32_t> returned;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for_each_tensor(outputs[i], [&](const at::Tensor& t) {
      if (!can_record(t)) {
        if (t.defined()) op.flags |= kOpOpaque;
        returned.push_back(tensor_row(t, kNone, false));
        return;
      }
      std::int32_t slot = slots_.find(t);
      const bool fresh = slot == kNone;
      if (fresh) slot = slots_.add(t, /*produced=*/true);
      const std::int32_t row = tensor_row(t, slot, false);
      returned.push_back(row);
      if (fresh && traits.returns[i] != ReturnKind::written) add_written(op, t, slot, row);
    });
  for (const at::Tensor& t : frame.written) {
    const std::int32_t slot = slots_.find(t);
    if (slot == kNone) continue;
    Slot& slot_row = doc_.slots[static_cast<std::size_t>(slot)];
    slot_row.bytes = std::max<std::uint64_t>(slot_row.bytes, t.storage().nbytes());
    add_written(op, t, slot, tensor_row(t, slot, false));
  }
  // Rows of returned tensors must be one range: those of written arguments came after them, opaque parts included.
  op.first_output = returned.empty() ? static_cast<std::int32_t>(doc_.tensors.size()) : returned.front();
  op.output_count = static_cast<std::int32_t>(returned.size());
  if (op.written_count == 0) op.flags |= kOpViewOnly;
  if (outputs.empty() && !traits.returns.empty()) op.flags |= kOpFailed;
  if (op.flags & kOpOpaque) keep_outputs(op, frame.op, outputs);
  link_forward(op, outputs, frame.op);
  judge_birth(traits, frame, op);
  doc_.ops[static_cast<std::size_t>(frame.op)] = std::move(op);
}

void TraceRecorder::keep_outputs(OpRow& op, std::int32_t index, c10::ArrayRef<const c10::IValue> outputs) {
  std::size_t number = 0;
  for (const c10::IValue& output : outputs)
    for_each_tensor(output, [&](const at::Tensor& t) {
      const std::string path = numbered("trace/opaque/", static_cast<std::size_t>(index)) + "/" + std::to_string(number++);
      if (!is_plain(t) || !dtype_of(t.scalar_type())) return;
      recording_.data.emplace_back(path, t.detach().to(at::kCPU, t.scalar_type(), false, true).contiguous());
      if (op.host_data.empty()) op.host_data = path;
    });
}

void TraceRecorder::judge_birth(const OpTraits& traits, Frame& frame, OpRow& op) {
  if (!frame.inputs_finite || (op.flags & (kOpUninitialised | kOpOpaque | kOpFailed))) return;
  bool bad = false;
  for (std::int32_t i = 0; i < op.written_count; ++i) {
    const std::int32_t row = doc_.written[static_cast<std::size_t>(op.first_written + i)];
    const std::int32_t stats = doc_.tensors[static_cast<std::size_t>(row)].stats;
    bad = bad || (stats != kNone && doc_.stats[static_cast<std::size_t>(stats)].non_finite() > 0);
  }
  if (!bad) return;
  op.flags |= kOpBirth;
  if (births_judged_++ >= kMaxBirthsJudged) return;
  switch (compute_one_up(traits, frame.inputs)) {
    case OneUp::finite: op.flags |= kOpBirthFiniteAbove; break;
    case OneUp::non_finite: op.flags |= kOpBirthStays; break;
    case OneUp::unknown: break;
  }
}

void TraceRecorder::on_error(const char* what) {
  const std::lock_guard lock(mutex_);
  recording_.notes.push_back(std::string("an op was not recorded: ") + what);
}

}  // namespace nanquest
