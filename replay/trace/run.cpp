#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "replay/trace/impl.h"

namespace nanquest::trace {

std::int32_t op_count(const SnapshotDoc& doc, const RunOptions& options) {
  const auto all = static_cast<std::int32_t>(doc.ops.size());
  return options.stop_after == kNone ? all : std::clamp(options.stop_after + 1, 0, all);
}

Run::Run(const Replayer::Impl& impl, const RunOptions& options)
    : impl_(impl),
      options_(options),
      machine_(impl.doc(), impl.plan, impl.source(), options.precision, options.edit),
      watch_(impl.doc(), impl.plan) {
  result_.ops.resize(impl.doc().ops.size());
  if (options.local) {
    no_edit_.slot_edit = options.edit.slot_edit;  // a changed input is changed for both
    recorded_.emplace(impl.doc(), impl.plan, impl.source(), Precision::as_recorded, no_edit_);
  }
}

void Run::step(std::int32_t op, std::vector<at::Tensor>* written) {
  SlotStore& inputs = options_.local ? recorded_->slots() : machine_.slots();
  OpOutcome& outcome = result_.ops[static_cast<std::size_t>(op)];
  try {
    if (options_.scan) watch_.before(op, inputs);
  } catch (...) {  // the op itself will say what is wrong with its inputs
  }
  last_ = options_.local ? machine_.step_isolated(op, inputs) : machine_.step(op);
  outcome.ran = last_.ran;
  outcome.substituted = last_.substituted;
  outcome.error = last_.error;
  outcome.note = last_.note;
  result_.failed += last_.failed;
  result_.substituted += last_.substituted;
  if (!last_.ran && !last_.substituted) return;
  if (!options_.scan && !options_.hash && !written) return;
  std::vector<at::Tensor> tensors = options_.local ? last_.written : machine_.written(op);
  tensors.resize(impl_.plan.ops[static_cast<std::size_t>(op)].written.size());
  try {
    if (options_.scan || options_.hash)
      watch_.after(op, inputs, tensors, options_.scan, options_.hash, result_);
  } catch (const std::exception& e) {
    outcome.note = std::string("its outputs could not be looked at: ") + e.what();
  }
  const std::int32_t loss = impl_.doc().loss;
  if (options_.local && loss >= 0 && static_cast<std::size_t>(loss) < impl_.doc().tensors.size()) {
    const std::vector<std::int32_t>& rows = impl_.plan.ops[static_cast<std::size_t>(op)].written;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i] != kNone && impl_.doc().tensors[static_cast<std::size_t>(rows[i])].slot ==
                                  impl_.doc().tensors[static_cast<std::size_t>(loss)].slot)
        local_loss_ = tensors[i];
  }
  if (written) *written = std::move(tensors);
}

void Run::finish_op(std::int32_t op) {
  if (options_.on_op) {
    std::vector<at::Tensor> outputs = options_.local ? last_.outputs : machine_.outputs(op);
    outputs.resize(impl_.plan.ops[static_cast<std::size_t>(op)].outputs.size());
    options_.on_op(op, outputs);
  }
  if (options_.local) {
    const StepOutcome recorded = recorded_->step(op);
    OpOutcome& outcome = result_.ops[static_cast<std::size_t>(op)];
    if (recorded.failed && outcome.error.empty()) {
      outcome.error = "as recorded: " + recorded.error;
      ++result_.failed;
    }
    recorded_->finish(op);
  } else {
    machine_.finish(op);
  }
  last_ = {};
}

void Run::settle(std::int32_t row, bool& finite, double* value) {
  const SnapshotDoc& doc = impl_.doc();
  if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size()) return;
  const TensorRow& tensor = doc.tensors[static_cast<std::size_t>(row)];
  if (tensor.slot < 0 || static_cast<std::size_t>(tensor.slot) >= doc.slots.size()) return;
  at::Tensor last;
  if (options_.local) {
    if (options_.scan && watch_.bad_in(tensor.slot) > 0) finite = false;
    if (value) last = local_loss_;
  } else if (machine_.slots().available(row)) {
    last = machine_.slots().view(row);
    if (badness(last).any) finite = false;
  }
  if (value && last.defined() && last.numel() == 1) *value = last.to(at::kDouble).item<double>();
  if (value && !std::isfinite(*value)) finite = false;
}

at::Tensor Run::value(std::int32_t row) {
  if (row < 0 || static_cast<std::size_t>(row) >= impl_.doc().tensors.size() || options_.local) return {};
  if (impl_.doc().tensors[static_cast<std::size_t>(row)].slot == kNone) return {};
  return machine_.slots().available(row) ? machine_.slots().view(row) : at::Tensor();
}

RunResult Run::finish() {
  try {
    settle(impl_.doc().loss, result_.loss_finite, &result_.loss);
    for (const std::int32_t row : impl_.doc().gradients) settle(row, result_.gradients_finite, nullptr);
  } catch (const std::exception&) {  // an op that makes them failed, and is counted
  }
  return std::move(result_);
}

}  // namespace nanquest::trace
