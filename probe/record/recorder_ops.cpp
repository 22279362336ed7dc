// Recorder: what happens at every op. Nothing is allocated here while a step repeats the last one.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "probe/observe/draws.h"
#include "probe/observe/process_groups.h"
#include "probe/observe/step_scope.h"
#include "probe/record/recorder.h"
#include "probe/record/recorder_frame.h"
#include "probe/record/rows.h"
#include "probe/record/same_call.h"
#include "probe/record/timed.h"
#include "probe/record/tokens.h"
#include "probe/record/unrepeatable.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/sparse_values.h"
#include "probe/trace/op_facts.h"

namespace nanquest {

using record::header_of;
using record::OpRecord;
using record::put_scalar;
using record::put_tensor;
using record::SlotRecord;
using record::Timed;
using record::Words;

namespace {

/// More ops than this between two steps are not clean-up.
constexpr std::uint32_t kLookEvery = 64;

/// There is no CPU kernel for it: it may not run where the step is replayed.
bool needs_its_device(const OpTraits& op) {
  return op.accelerator != c10::kCPU && !op.handle.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

/// The plain tensors that a sparse tensor consists of; values recorded in their place are left out.
void inner_memory(const at::Tensor& t, std::vector<at::Tensor>& out) {
  if (t.is_sparse())
    out.push_back(t._indices());
  else if (t.layout() == at::kSparseCsr || t.layout() == at::kSparseBsr)
    out.insert(out.end(), {t.crow_indices(), t.col_indices(), t.values()});
  else if (t.layout() == at::kSparseCsc || t.layout() == at::kSparseBsc)
    out.insert(out.end(), {t.ccol_indices(), t.row_indices(), t.values()});
}

/// A copy from a device to the host that the host does not wait for.
bool arrives_later(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  if (op.accelerator == c10::kCPU || (!op.moves && op.name != "aten::_to_copy")) return false;
  const c10::IValue& source = inputs[op.moves ? 1 : 0];
  const c10::IValue& at_once = inputs[op.moves ? 2 : 5];
  return source.isTensor() && source.toTensor().defined() && !source.toTensor().is_cpu() &&
         at_once.isBool() && at_once.toBool();
}

constexpr char kEndOfBackward[] = "end of the backward pass";

}  // namespace

/// A node that was attached to a tensor after its op had ended: that of an autograd.Function, or of the base
/// of a view that was written.
void Recorder::link_maker(const at::Tensor& tensor, std::uint32_t slot) {
  // Asking a view for its node may create one.
  if (!tensor.requires_grad() || tensor.is_view()) return;
  record::Step& step = *into_;
  const std::uint32_t writer = step.slots[slot].writer;
  const auto* node = writer == UINT32_MAX ? nullptr : torch::autograd::impl::grad_fn_unsafe(tensor);
  if (!node) return;
  const auto sequence = static_cast<std::int64_t>(node->sequence_nr());
  if (step.ops[writer].made == sequence) return;
  step.nodes.push_back({static_cast<std::uint32_t>(step.ops.size() - 1), writer,
                        at::RecordFunction::currentThreadId(), sequence});
}

void Recorder::record_argument(const OpTraits& op, std::size_t index, const c10::IValue& value,
                               Frame& frame) {
  record::Step& step = *into_;
  Words& words = step.words;
  OpRecord& record = step.ops.back();
  const bool written = op.argument_written[index];
  const auto put = [&](const auto& self, const c10::IValue& v) -> void {
    ++record.argument_tokens;
    if (v.isTensor()) {
      frame.takes_tensors = true;
      const at::Tensor& given = v.toTensor();
      at::Tensor values;
      if (!given.defined() || !can_record(given)) {
        record.opaque = record.opaque || given.defined();
        values = values_standing_for(given);
        if (written && given.defined()) inner_memory(given, frame.inner);
        if (!values.defined()) {
          put_tensor(words, given, record::SlotIndex::kMissing, 0);
          return;
        }
      }
      const at::Tensor& t = values.defined() ? values : given;
      bool host_write = false;
      const bool blind = written && op.argument_overwritten[index];
      const std::uint32_t slot = outside_or_known(t, blind, op.awaits || op.views, host_write);
      link_maker(t, slot);
      frame.of_model = frame.of_model || step.slots[slot].of_model;
      if (op.argument_read[index] && !op.views && !op.awaits) step.slots[slot].read = true;
      if (written) call_in(t.storage().unsafeGetStorageImpl());
      if (written && !(blind && overwrites_unread(op, t, slot))) about_to_write(step, slot);
      const std::uint32_t token = words.size();
      put_tensor(words, t, slot, host_write ? record::kHostWriteBefore : 0);
      frame.host_wrote = frame.host_wrote || host_write;
      if (frame.watched) {
        if (host_write) step.watch->written_by_host(slot);
        // The result of a collective is not looked at before the program has waited for it.
        const bool read = op.argument_read[index] && step.slots[slot].initialised && !step.slots[slot].late;
        step.watch->argument(op, *frame.watched, t, slot, token, read, written);
      }
      if (written) frame.written.push_back(t);
    } else if (put_scalar(words, v)) {
      return;
    } else if (v.isList()) {
      const c10::ArrayRef<c10::IValue> elements = v.toListRef();
      words.put(header_of(ArgKind::list, static_cast<std::int64_t>(elements.size())));
      words.put_value(record::element_type(v));
      for (const c10::IValue& element : elements) self(self, element);
    } else if (v.isTuple()) {
      const auto& elements = v.toTupleRef().elements();
      words.put(header_of(ArgKind::list, static_cast<std::int64_t>(elements.size())));
      words.put_value(record::kTupleType);
      for (const c10::IValue& element : elements) self(self, element);
    } else {
      record.opaque = true;
      words.put(header_of(ArgKind::opaque));
      words.put_value(record::kept_text(op.collective ? words_for_object(v) : v.tagKind()));
    }
  };
  put(put, value);
}

void Recorder::share_stack(const Frame& frame, std::unique_lock<std::mutex>& lock) {
  record::Step& step = *into_;
  const std::uint32_t op = frame.op;
  // The frames of a backward op are the engine's own. Where unwinding is slow, only those of a birth are
  // gathered.
  if (step.ops[op].phase == Phase::backward && Stack::costly()) {
    if (op < step.stacks.size()) step.stacks[op].reset();
    return;
  }
  if (step.stacks.size() <= op) step.stacks.resize(op + 1);
  const record::Step* const before = leads_.running() ? &leads_.before() : before_;
  // Where steps make more or fewer passes than the one before, their backward passes are compared from their
  // beginning: all of it was called from one place.
  std::uint32_t like = op;
  if (step.ops[op].phase == Phase::backward) {
    if (step.backward_at == UINT32_MAX) step.backward_at = op;
    if (before && before->backward_at != UINT32_MAX) like = before->backward_at + (op - step.backward_at);
  }
  if (before && like < std::min(before->ops.size(), before->stacks.size()) && before->stacks[like] &&
      same_call(step, op, *before, like)) {
    step.stacks[op] = before->stacks[like];
    return;
  }
  // Python's frames are walked under the interpreter's lock, and the thread that holds it may wait for a lock
  // of the recorder.
  lock.unlock();
  std::shared_ptr<Stack> stack = Stack::gather();
  lock.lock();
  if (recording_ && frame.step == into_ && frame.number == into_->number) step.stacks[op] = std::move(stack);
}

std::unique_ptr<Recorder::Frame> Recorder::add_op(const OpTraits& op,
                                                  c10::ArrayRef<const c10::IValue> inputs) {
  record::Step& step = *into_;
  auto frame = std::make_unique<Frame>();
  frame->step = into_;
  frame->number = step.number;
  frame->op = static_cast<std::uint32_t>(step.ops.size());
  if (!spare_.empty()) {
    frame->written = std::move(spare_.back());
    spare_.pop_back();
  }
  OpRecord& record = step.ops.emplace_back();
  record.traits = &op;
  record.phase = current_phase();
  record.micro_batch = current_micro_batch();
  record.module = current_module();
  frame->of_model = record.module != nullptr;
  if (const NodeContext node = current_node(); node.in_backward) {
    record.phase = Phase::backward;
    record.node = node.name.data();
    record.node_length = static_cast<std::uint32_t>(node.name.size());
    record.recompute = node.forward_again;
    if (!record.recompute) {
      record.sequence = node.sequence;
      record.thread = node.forward_thread;
    }
  } else if (torch::autograd::get_current_graph_task_id() != -1) {
    record.phase = Phase::backward;
    record.node = kEndOfBackward;
    record.node_length = sizeof(kEndOfBackward) - 1;
  }
  record.opaque = op.opaque;
  frame->arrives_later = arrives_later(op, inputs);
  step.talks = step.talks || op.collective;
  if (op.seeded) {
    record::GeneratorState state = record::state_of(inputs);
    if (state.on_cpu || draws(op, inputs)) {
      record.generator = static_cast<std::int32_t>(step.generators.size());
      step.generators.push_back(std::move(state));
    }
  }
  record.first_argument = step.words.size();
  if (step.watch) {
    frame->watched = std::make_unique<record::WatchedOp>();
    step.watch->before_arguments(op, inputs);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) record_argument(op, i, inputs[i], *frame);
  copy_overwritten();
  record.argument_words = step.words.size() - record.first_argument;
  if (frame->watched) step.watch->before_op(op, *frame->watched, inputs, frame->written, record.opaque);
  return frame;
}

/// What a process group's own thread does for a collective (staging copies) belongs to the collective.
bool Recorder::is_inside_collective() const {
  if (is_thread_of_process_group()) return true;
  return into_->talks && at::RecordFunction::currentThreadId() != thread_ && !current_node().in_backward &&
         torch::autograd::get_current_graph_task_id() == -1;
}

std::unique_ptr<OpFrame> Recorder::on_start(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  std::unique_lock lock(mutex_);
  if (!recording_ || into_ != current_) {
    late_write(op, inputs);
    if (++ops_between_ % kLookEvery == 0) let_go_of_the_past();
    if (!recording_) return nullptr;
  }
  if (leads_.running()) {
    const bool too_long = leads_.too_long();
    if (too_long) leads_.rest();
    if (too_long || current_phase() == Phase::optimizer) {  // the turn of another optimizer
      drop_lead();
      return nullptr;
    }
  }
  if (is_inside_collective() || finishes_collective(*into_, op, inputs)) return nullptr;
  if (into_ != current_ && into_->ops.size() >= options_.max_ops) {
    end_tape("between two steps more than " + std::to_string(options_.max_ops) + " operations ran");
    return nullptr;
  }
  if (into_ == current_ && !into_->watch && (into_->ops.size() >= options_.max_ops || holds_too_much())) {
    give_up_step();
    return nullptr;
  }
  const Timed timed(updating_ ? &update_cost_.seconds : nullptr);
  std::unique_ptr<Frame> frame = add_op(op, inputs);
  if (options_.stacks && (into_ == current_ || leads_.running())) share_stack(*frame, lock);
  return frame;
}

std::unique_ptr<OpFrame> Recorder::on_saved_copy(const OpTraits& copy, OpFrame& outer_frame,
                                                 c10::ArrayRef<const c10::IValue> inputs) {
  const std::lock_guard lock(mutex_);
  auto& outer = static_cast<Frame&>(outer_frame);
  // Ops that other threads have begun since then know their indices, so records can't be moved. The host's
  // write is recorded as part of the outer op's reading.
  if (!recording_ || outer.step != into_ || outer.number != into_->number || outer.host_wrote ||
      outer.op + 1 != into_->ops.size())
    return nullptr;
  const bool of_overwritten = std::any_of(
      outer.written.begin(), outer.written.end(),
      [&](const at::Tensor& t) { return inputs[0].isTensor() && inputs[0].toTensor().is_alias_of(t); });
  if (!of_overwritten) return nullptr;
  const Timed timed(updating_ ? &update_cost_.seconds : nullptr);
  std::unique_ptr<Frame> frame = add_op(copy, inputs);
  record::Step& step = *into_;
  std::swap(frame->op, outer.op);
  std::swap(step.ops[frame->op], step.ops[outer.op]);
  if (frame->op < step.stacks.size()) {
    step.stacks.resize(std::max<std::size_t>(step.stacks.size(), outer.op + 1));
    step.stacks[outer.op] = step.stacks[frame->op];
  }
  return frame;
}

void Recorder::record_output(const OpTraits& op, Frame& frame, ReturnKind kind, const at::Tensor& given) {
  record::Step& step = *into_;
  OpRecord& record = step.ops[frame.op];
  ++record.outputs;
  at::Tensor values;
  if (!given.defined() || !can_record(given)) {
    record.opaque = record.opaque || given.defined();
    values = values_standing_for(given);
    if (!values.defined()) {
      put_tensor(step.words, given, record::SlotIndex::kMissing, 0);
      if (frame.watched) frame.watched->made.returned.emplace_back();
      return;
    }
  }
  const at::Tensor& t = values.defined() ? values : given;
  std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
  if (slot == record::SlotIndex::kMissing) slot = step.slots.add(t, /*produced=*/true);
  const bool fresh = slot >= frame.known;  // parts of one new storage are all new
  if (fresh) {
    step.slots[slot].initialised = !op.uninitialised;
    step.slots[slot].writer = frame.op;
    step.slots[slot].of_model = frame.of_model;
  }
  const std::uint32_t token = step.words.size();
  put_tensor(step.words, t, slot, fresh ? record::kNewMemory : 0);
  if (frame.watched) frame.watched->made.returned.push_back(fresh ? t : at::Tensor());
  if (fresh && op.collective && into_ == current_)
    keep_later(step, frame.op, t, slot, token, /*argument=*/false);
  else if (fresh && frame.watched && !(frame.arrives_later && t.is_cpu()))
    step.watch->wrote(op, *frame.watched, t, slot, token, static_cast<int>(record.outputs) - 1);
  if (fresh) ++record.fresh;
  // Memory that an argument got during the op counts as written once.
  if (fresh && kind == ReturnKind::written)
    std::erase_if(frame.written, [&](const at::Tensor& w) { return w.is_same(t); });
  const auto* node = torch::autograd::impl::grad_fn_unsafe(given);
  if (!node) return;
  const auto sequence = static_cast<std::int64_t>(node->sequence_nr());
  const std::uint64_t thread = at::RecordFunction::currentThreadId();
  if (record.made < 0) {
    record.made = sequence;
    record.made_by = thread;
  } else if (record.made != sequence) {
    step.nodes.push_back({frame.op, frame.op, thread, sequence});
  }
}

void Recorder::record_written(const OpTraits& op, Frame& frame, const at::Tensor& t) {
  record::Step& step = *into_;
  const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
  if (slot == record::SlotIndex::kMissing) return;
  SlotRecord& written = step.slots[slot];
  written.bytes = std::max<std::uint64_t>(written.bytes, t.storage().nbytes());
  written.initialised = !op.uninitialised;
  written.writer = frame.op;
  written.of_model = written.of_model || frame.of_model;
  const std::uint32_t token = step.words.size();
  put_tensor(step.words, t, slot, 0);
  if (op.collective && into_ == current_) {
    keep_later(step, frame.op, t, slot, token, /*argument=*/true);
  } else {
    // A late write can't be told from writes of others.
    if (frame.arrives_later && t.is_cpu()) written.shared = false;
    if (written.shared) written.shared_hash = hash_of_storage(t.storage());
    if (frame.watched && !(frame.arrives_later && t.is_cpu()))
      step.watch->wrote(op, *frame.watched, t, slot, token, -1);
  }
  ++step.ops[frame.op].written;
}

void Recorder::on_end(const OpTraits& op, OpFrame& base, c10::ArrayRef<const c10::IValue> outputs) {
  const std::lock_guard lock(mutex_);
  auto& frame = static_cast<Frame&>(base);
  // The step may have ended while another thread was inside the op.
  if (recording_ && frame.step == into_ && frame.number == into_->number) {
    const Timed timed(updating_ ? &update_cost_.seconds : nullptr);
    record::Step& step = *into_;
    if (frame.watched) step.watch->before_outputs(op, outputs, frame.written);
    step.ops[frame.op].first_output = step.words.size();
    frame.known = step.slots.size();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      each_tensor(outputs[i], [&](const at::Tensor& t) { record_output(op, frame, op.returns[i], t); });
    if (op.gives_what_it_wrote && frame.written.size() == 1 && !outputs.empty() && outputs[0].isTensor() &&
        outputs[0].toTensor().is_alias_of(frame.written[0]))
      frame.written[0] = outputs[0].toTensor();
    for (const at::Tensor& t : frame.written) record_written(op, frame, t);
    if (frame.watched)
      for (at::Tensor& t : step.watch->rewritten(*frame.watched)) {
        record_written(op, frame, t);
        frame.written.push_back(std::move(t));
      }
    for (const at::Tensor& t : frame.inner)
      if (const std::uint32_t slot = step.slots.find(t.storage().unsafeGetStorageImpl());
          slot != record::SlotIndex::kMissing)
        step.slots[slot].initialised = false;
    OpRecord& record = step.ops[frame.op];
    record.returned_nothing = outputs.empty();
    record.ended = true;
    if (tape_ && tape_->running()) note_for_tape(op, frame, outputs);
    if ((record.opaque || op.unknown_elsewhere || draws_on_device(step, record) || needs_its_device(op)) &&
        !op.collective && into_ == current_)
      keep_outputs(step, frame.op, frame.known, outputs, frame.written);
    if (frame.watched)
      step.watch->after_op(op, *frame.watched, frame.op);
    else if (range_watch_.wants(record))
      range_watch_.saw(record, outputs, frame.written);
  }
  frame.written.clear();
  spare_.push_back(std::move(frame.written));
}

}  // namespace nanquest
