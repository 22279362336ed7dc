#include "probe/capture/recorder.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "probe/capture/arguments.h"
#include "probe/capture/birth.h"
#include "probe/observe/module_scope.h"
#include "probe/observe/tensor_scan.h"

namespace nanquest {
namespace {

/// A step that went wrong at one place has few births; a step that went wrong everywhere is judged by its first ones.
constexpr int kMaxBirthsJudged = 64;

std::uint64_t sequence_key(std::uint64_t thread, std::int64_t sequence) {
  return thread * 0x9E3779B97F4A7C15ull ^ static_cast<std::uint64_t>(sequence);
}

std::string numbered(const char* prefix, std::size_t n) {
  char text[64];
  std::snprintf(text, sizeof text, "%s%06zu", prefix, n);
  return text;
}

/// Ops that write their first argument without reading it.
bool overwrites_self(std::string_view name) {
  for (const std::string_view n : {"aten::fill_", "aten::zero_", "aten::copy_", "aten::normal_", "aten::uniform_",
                                   "aten::random_", "aten::bernoulli_", "aten::exponential_", "aten::log_normal_",
                                   "aten::geometric_", "aten::cauchy_", "aten::set_", "aten::resize_", "aten::resize_as_",
                                   "aten::_foreach_zero_", "aten::_foreach_copy_"})
    if (name == n) return true;
  return false;
}

bool is_reduced(const at::Tensor& t) { return t.is_floating_point() && t.element_size() <= 2; }

/// Plain memory of an element type that the file format knows.
bool can_record(const at::Tensor& t) { return is_plain(t) && dtype_of(t.scalar_type()).has_value(); }

std::uint32_t tensor_flags(const at::Tensor& t) {
  std::uint32_t flags = 0;
  if (t.is_conj()) flags |= kTensorConj;
  if (t.is_neg()) flags |= kTensorNeg;
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) flags |= kTensorWrappedNumber;
  if (t.requires_grad()) flags |= kTensorRequiresGrad;
  return flags;
}

}  // namespace

struct TraceRecorder::Frame : OpFrame {
  std::int32_t op = kNone;
  std::vector<at::Tensor> written;       // mutable arguments, held until the op is done
  std::vector<c10::IValue> inputs;       // as the op got them; reduced-precision mutable ones cloned
  bool inputs_finite = true;
};

TraceRecorder::TraceRecorder(Recording& recording, const RecordOptions& options)
    : recording_(recording), doc_(recording.doc), options_(options), slots_(recording.doc.slots) {}

NamedTensor TraceRecorder::keep(const std::string& group, const std::string& name, const at::Tensor& tensor,
                                SlotOrigin origin) {
  NamedTensor row;
  row.name = name;
  row.data = free_path(group + "/" + name);
  row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
  row.shape = tensor.sizes().vec();
  if (!is_plain(tensor)) {
    recording_.notes.push_back(row.data + ": not plain memory, kept by name only");
    row.data.clear();
    return row;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor copy =
      tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true, at::MemoryFormat::Contiguous);
  const bool whole = tensor.is_contiguous() && tensor.storage_offset() == 0 &&
                     tensor.storage().nbytes() == static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  recording_.data.emplace_back(row.data, copy);
  slots_.name(tensor, {origin, name, whole ? row.data : std::string{}});
  return row;
}

std::int32_t TraceRecorder::slot_for_argument(const at::Tensor& tensor, bool written) {
  std::int32_t slot = slots_.find(tensor);
  if (slot != kNone) {
    Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
    row.bytes = std::max<std::uint64_t>(row.bytes, tensor.storage().nbytes());
    if (!slots_.state(slot).initialised && !written) add_host_write(tensor, slot);
    return slot;
  }
  slot = slots_.add(tensor, /*produced=*/false);
  Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
  if (row.data.empty() && row.bytes > 0) {
    row.data = numbered("trace/slot_data/", static_cast<std::size_t>(slot));
    if (options_.lazy) {
      slots_.state(slot).live = tensor.storage();
    } else {
      recording_.data.emplace_back(row.data, copy_storage(tensor));
    }
  }
  return slot;
}

std::string TraceRecorder::free_path(const std::string& wanted) {
  const int used = ++names_used_[wanted];
  return used == 1 ? wanted : wanted + "#" + std::to_string(used);
}

void TraceRecorder::save_outside(std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  if (!state.live) return;
  const Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
  state.saved = copy_storage(state.live, scalar_type_of(row.dtype));
  state.live = {};
  recording_.data.emplace_back(row.data, state.saved);
}

void TraceRecorder::copy_outside() {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slots_.size(); ++i) save_outside(static_cast<std::int32_t>(i));
}

void TraceRecorder::announce(const std::string& name, const at::Tensor& tensor, SlotOrigin origin) {
  if (is_plain(tensor)) slots_.name(tensor, {origin, name, {}});
}

NamedTensor TraceRecorder::keep_first(const std::string& group, const std::string& name, const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  NamedTensor row;
  row.name = name;
  row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
  row.shape = tensor.sizes().vec();
  if (!is_plain(tensor)) return row;
  row.slot = slots_.find(tensor);
  const at::Tensor saved = row.slot == kNone ? at::Tensor{} : slots_.state(row.slot).saved;
  const at::NoGradGuard no_grad;
  // A slot that the trace produced (a buffer made new inside the step) has no first value: what it is now is kept.
  const bool first_known = saved.defined() && saved.scalar_type() == tensor.scalar_type();
  const at::Tensor first = first_known
                               ? saved.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset())
                               : tensor.detach().to(at::kCPU);
  const bool whole = first_known && tensor.is_contiguous() && tensor.numel() == saved.numel();
  row.data = free_path(group + "/" + name);
  if (whole) {
    // Stored once: the slot's bytes are this tensor, so the slot points here.
    Slot& slot = doc_.slots[static_cast<std::size_t>(row.slot)];
    std::erase_if(recording_.data, [&](const auto& d) { return d.first == slot.data; });
    slot.data = row.data;
  }
  recording_.data.emplace_back(row.data, first.contiguous());
  return row;
}

bool TraceRecorder::wrote_non_finite(std::size_t first, Phase phase) const {
  for (std::size_t i = first; i < doc_.ops.size(); ++i) {
    const OpRow& op = doc_.ops[i];
    if (op.phase != phase) continue;
    for (std::int32_t w = 0; w < op.written_count; ++w) {
      const TensorRow& row = doc_.tensors[static_cast<std::size_t>(doc_.written[static_cast<std::size_t>(op.first_written + w)])];
      if (row.stats != kNone && doc_.stats[static_cast<std::size_t>(row.stats)].non_finite() > 0) return true;
    }
  }
  return false;
}

void TraceRecorder::add_host_write(const at::Tensor& tensor, std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  state.initialised = true;
  ++state.generation;
  OpRow op;
  op.name = "nanquest::host_write";
  op.flags = kOpHostWrite;
  op.phase = current_phase();
  op.first_arg = static_cast<std::int32_t>(doc_.args.size());
  op.host_data = numbered("trace/host_writes/", doc_.ops.size());
  const at::Tensor bytes = copy_storage(tensor);
  recording_.data.emplace_back(op.host_data, bytes);
  // The row spans the whole storage, whatever view was being read when it was noticed.
  TensorRow row;
  row.slot = slot;
  row.dtype = dtype_of(bytes.scalar_type()).value_or(DType::uint8);
  row.sizes = {bytes.numel()};
  row.strides = {1};
  if (const auto stats = stats_of(bytes, options_.hash)) {
    row.stats = static_cast<std::int32_t>(doc_.stats.size());
    doc_.stats.push_back(*stats);
  }
  op.first_output = static_cast<std::int32_t>(doc_.tensors.size());
  op.output_count = 1;
  doc_.tensors.push_back(std::move(row));
  op.first_written = static_cast<std::int32_t>(doc_.written.size());
  op.written_count = 1;
  doc_.written.push_back(op.first_output);
  doc_.ops.push_back(std::move(op));
  stacks_.push_back(nullptr);
}

std::int32_t TraceRecorder::stats_for(const at::Tensor& tensor, std::int32_t slot) {
  if (!options_.scan) return kNone;
  const auto type = dtype_of(tensor.scalar_type());
  if (!type) return kNone;
  SlotState& state = slots_.state(slot);
  for (const SlotState::Known& k : state.known)
    if (k.generation == state.generation && k.dtype == *type && k.offset == tensor.storage_offset() &&
        tensor.sizes() == k.sizes && tensor.strides() == k.strides)
      return k.stats;
  const auto stats = stats_of(tensor, options_.hash);
  if (!stats) return kNone;
  const auto index = static_cast<std::int32_t>(doc_.stats.size());
  doc_.stats.push_back(*stats);
  std::erase_if(state.known, [&](const auto& k) { return k.generation != state.generation; });
  state.known.push_back({state.generation, index, *type, tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec()});
  return index;
}

std::int32_t TraceRecorder::tensor_row(const at::Tensor& tensor, std::int32_t slot, bool with_stats) {
  TensorRow row;
  if (!tensor.defined()) {
    row.flags = kTensorUndefined;
  } else if (slot == kNone) {
    row.flags = kTensorOpaque;
    row.sizes = tensor.sizes().vec();
    row.strides.assign(row.sizes.size(), 0);
  } else {
    row.slot = slot;
    row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
    row.flags = tensor_flags(tensor);
    row.storage_offset = tensor.storage_offset();
    row.sizes = tensor.sizes().vec();
    row.strides = tensor.strides().vec();
    if (with_stats) row.stats = stats_for(tensor, slot);
  }
  doc_.tensors.push_back(std::move(row));
  return static_cast<std::int32_t>(doc_.tensors.size()) - 1;
}

std::int32_t TraceRecorder::module_row(std::string_view path, std::string_view type) {
  const auto found = modules_.find(path);
  if (found != modules_.end()) return found->second;
  const auto index = static_cast<std::int32_t>(doc_.modules.size());
  doc_.modules.push_back({std::string(path), std::string(type)});
  modules_.emplace(std::string(path), index);
  return index;
}

void TraceRecorder::fill_context(OpRow& op) {
  op.phase = current_phase();
  op.micro_batch = current_micro_batch();
  const NodeContext node = current_node();
  if (node.in_backward) {
    op.phase = Phase::backward;
    op.node = node.name;
    op.sequence = node.sequence;
    const auto forward = forward_ops_.find(sequence_key(node.forward_thread, node.sequence));
    if (node.sequence >= 0 && forward != forward_ops_.end()) {
      op.forward_op = forward->second;
      op.module = doc_.ops[static_cast<std::size_t>(forward->second)].module;
      return;
    }
  }
  const std::string_view path = current_module_path();
  if (!path.empty()) op.module = module_row(path, current_module_type());
}

std::int32_t TraceRecorder::save_generator(c10::ArrayRef<const c10::IValue> inputs) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  for (const c10::IValue& input : inputs)
    if (input.isGenerator()) generator = input.toGenerator();
  at::Tensor state;
  {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    state = generator.get_state();
  }
  const auto index = static_cast<std::int32_t>(doc_.rng_states.size());
  doc_.rng_states.push_back(numbered("rng/", static_cast<std::size_t>(index)));
  recording_.data.emplace_back(doc_.rng_states.back(), state);
  return index;
}

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
    const bool blind = written && (traits.handle.schema().arguments()[i].is_out() || overwrites_self(traits.name));
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

void TraceRecorder::link_forward(OpRow& op, c10::ArrayRef<const c10::IValue> outputs, std::int32_t index) {
  if (op.phase == Phase::backward) return;
  for (const c10::IValue& output : outputs)
    for_each_tensor(output, [&](const at::Tensor& t) {
      if (op.sequence >= 0 || !t.defined()) return;
      // Holding or naming the pointer's type would tie this to one LibTorch version.
      const auto node = t.grad_fn();
      if (!node) return;
      op.sequence = static_cast<std::int64_t>(node->sequence_nr());
      forward_ops_[sequence_key(at::RecordFunction::currentThreadId(), op.sequence)] = index;
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

std::int32_t TraceRecorder::describe(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!tensor.defined() || !is_plain(tensor)) return kNone;
  const std::int32_t row = tensor_row(tensor, slot_for_argument(tensor, false), true);
  if (options_.scan) return row;
  // A standing trace hashes nothing on its way: what is alive at its end is the proof that a replay is the same step.
  if (const auto stats = stats_of(tensor, true)) {
    doc_.tensors[static_cast<std::size_t>(row)].stats = static_cast<std::int32_t>(doc_.stats.size());
    doc_.stats.push_back(*stats);
  }
  return row;
}

void TraceRecorder::link_slots(std::vector<NamedTensor>& rows, const NamedTensors& tensors) const {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (is_plain(tensors[i].second)) rows[i].slot = slots_.find(tensors[i].second);
}

}  // namespace nanquest
