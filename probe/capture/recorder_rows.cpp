// TraceRecorder: table rows of tensors, and what an op's row says of where it ran.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "probe/capture/arguments.h"
#include "probe/capture/recorder.h"
#include "probe/capture/recorder_parts.h"
#include "probe/observe/module_scope.h"
#include "probe/tensor/each_tensor.h"

namespace nanquest {

std::int32_t TraceRecorder::tensor_row(const at::Tensor& tensor, std::int32_t slot, Look look) {
  TensorRow row;
  if (!tensor.defined()) {
    row.flags = kTensorUndefined;
  } else if (slot == kNone) {
    row.flags = kTensorOpaque;
    if (!tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides())
      row.sizes = tensor.sizes().vec();
    row.strides.assign(row.sizes.size(), 0);
  } else {
    row = row_of(tensor, slot);
    row.stats = stats_for(tensor, slot, look);
    if (row.stats == kNone && looked_at_later(slot, look))
      unseen_.push_back(static_cast<std::int32_t>(doc_.tensors.size()));
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
  const std::string_view path = current_module_path();
  if (!path.empty()) op.module = module_row(path, current_module_type());
  const NodeContext node = current_node();
  if (!node.in_backward) {
    // What the engine was asked to do when all gradients are there (DistributedDataParallel's last copies).
    if (torch::autograd::get_current_graph_task_id() == -1) return;
    op.phase = Phase::backward;
    op.node = "end of the backward pass";
    return;
  }
  op.phase = Phase::backward;
  op.node = node.name;
  if (node.forward_again) {  // its module is the one that runs again
    op.flags |= kOpRecompute;
    return;
  }
  op.sequence = node.sequence;
  const auto forward = forward_ops_.find(sequence_key(node.forward_thread, node.sequence));
  if (node.sequence < 0 || forward == forward_ops_.end()) return;
  op.forward_op = forward->second.op;
  op.module = forward->second.module;
}

void TraceRecorder::link_maker(const at::Tensor& tensor, std::int32_t slot) {
  // Asking a view for its node may make one.
  if (!tensor.requires_grad() || tensor.is_view() || tensor.is_leaf()) return;
  const std::int32_t writer = slots_.state(slot).writer;
  const auto node = tensor.grad_fn();
  if (!node || writer == kNone) return;
  const auto key =
      sequence_key(at::RecordFunction::currentThreadId(), static_cast<std::int64_t>(node->sequence_nr()));
  forward_ops_.try_emplace(key, Made{writer, doc_.ops[static_cast<std::size_t>(writer)].module});
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

void TraceRecorder::link_forward(OpRow& op, c10::ArrayRef<const c10::IValue> outputs, std::int32_t index) {
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& t) {
      if (!t.defined()) return;
      // Holding or naming the pointer's type would tie this to one LibTorch version.
      const auto node = t.grad_fn();
      if (!node) return;
      const auto sequence = static_cast<std::int64_t>(node->sequence_nr());
      if ((op.phase != Phase::backward || (op.flags & kOpRecompute)) && op.sequence < 0)
        op.sequence = sequence;
      // An op without a node of its own may return a tensor that has one.
      forward_ops_.try_emplace(sequence_key(at::RecordFunction::currentThreadId(), sequence),
                               Made{index, op.module});
    });
}

bool TraceRecorder::wrote_non_finite(std::size_t first, Phase phase) const {
  for (std::size_t i = first; i < doc_.ops.size(); ++i) {
    const OpRow& op = doc_.ops[i];
    if (op.phase != phase) continue;
    for (std::int32_t w = 0; w < op.written_count; ++w) {
      const TensorRow& row = doc_.tensors[static_cast<std::size_t>(
          doc_.written[static_cast<std::size_t>(op.first_written + w)])];
      if (row.stats != kNone && doc_.stats[static_cast<std::size_t>(row.stats)].non_finite() > 0) return true;
    }
  }
  return false;
}

std::int32_t TraceRecorder::describe(const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!tensor.defined() || !is_plain(tensor)) return kNone;
  const std::int32_t slot = slot_for_argument(tensor, false);
  settle(slot);
  const std::int32_t row = tensor_row(tensor, slot, Look::values_and_hash);
  if (options_.scan) return row;
  // A standing trace hashes nothing on its way: what is alive at its end is the proof that a replay is the
  // same step.
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
