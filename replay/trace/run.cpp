#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "replay/trace/replayer_state.h"

namespace nanquest::trace {

IdRange<OpRow> ops_to_run(const SnapshotDoc& doc, const RunOptions& options) {
  const auto all = static_cast<std::int32_t>(doc.ops.size());
  const std::int32_t end = options.stop_after == kNone ? all : std::clamp(options.stop_after + 1, 0, all);
  return IdRange<OpRow>(OpId{0}, OpId{end});
}

Run::Run(const Replayer::Impl& impl, const RunOptions& options)
    : impl_(impl),
      options_(options),
      machine_(impl.doc(), impl.plan(), impl.source(), options.precision, options.edit, options.device),
      watch_(impl.doc(), impl.plan()) {
  result_.ops.resize(impl.doc().ops.size());
  if (options.local) {
    no_edit_.slot_edit = options.edit.slot_edit;  // a changed input is changed for both
    recorded_.emplace(impl.doc(), impl.plan(), impl.source(), Precision::as_recorded, no_edit_,
                      options.device);
  }
}

Run::Run(const Replayer::Impl& impl, const RunOptions& options, Checkpoint::State& from)
    : impl_(impl),
      options_(options),
      machine_(impl.doc(), impl.plan(), impl.source(), Precision::as_recorded, options.edit,
               from.slots.fork()),
      watch_(from.watch),
      result_(from.result) {}

bool Run::harmed_after(OpId op) {
  for (const TensorId row : impl_.plan().ops[op].settles)
    if (machine_.slots().available(row) && badness(machine_.slots().view(row)).any) return true;
  return false;
}

std::shared_ptr<Checkpoint::State> Run::leave(OpId op) {
  return std::make_shared<Checkpoint::State>(
      Checkpoint::State{op, machine_.slots().fork(), watch_, std::move(result_)});
}

void Run::step(OpId op, std::vector<at::Tensor>* written) {
  SlotStore& inputs = options_.local ? recorded_->slots() : machine_.slots();
  OpOutcome& outcome = result_.ops[op.index()];
  try {
    if (options_.scan) watch_.before(op, inputs);
  } catch (...) {  // the op itself reports what is wrong with its inputs
  }
  last_ = options_.local ? machine_.step_isolated(op, inputs) : machine_.step(op);
  outcome.ran = last_.ran;
  outcome.substituted = last_.substituted;
  outcome.error = last_.error;
  outcome.note = last_.note;
  outcome.kept_format = last_.kept_format;
  result_.kept_format += outcome.kept_format;
  result_.failed += last_.failed;
  result_.substituted += last_.substituted;
  if (!last_.ran && !last_.substituted) return;
  if (!options_.scan && !options_.hash && !written) return;
  std::vector<at::Tensor> tensors = options_.local ? last_.written : machine_.written(op);
  tensors.resize(impl_.plan().ops[op].written.size());
  try {
    if (options_.scan || options_.hash)
      watch_.after(op, inputs, tensors, options_.scan, options_.hash, result_);
  } catch (const std::exception& e) {
    outcome.note = std::string("its outputs could not be looked at: ") + e.what();
  }
  const TraceGraph& graph = impl_.plan().graph;
  if (const SlotId loss = graph.slot(TensorId{impl_.doc().loss}); options_.local && loss) {
    const std::vector<TensorId>& rows = impl_.plan().ops[op].written;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (graph.slot(rows[i]) == loss) local_loss_ = tensors[i];
  }
  if (written) *written = std::move(tensors);
}

void Run::finish_op(OpId op) {
  if (options_.on_op) {
    std::vector<at::Tensor> outputs = options_.local ? last_.outputs : machine_.outputs(op);
    outputs.resize(impl_.plan().ops[op].outputs.size());
    options_.on_op(op.row(), outputs);
  }
  if (options_.local) {
    const StepOutcome recorded = recorded_->step(op);
    OpOutcome& outcome = result_.ops[op.index()];
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

void Run::settle(TensorId row, bool& finite, double* value) {
  const SlotId slot = impl_.plan().graph.slot(row);
  if (!slot) return;
  at::Tensor last;
  if (options_.local) {
    if (options_.scan && watch_.bad_in(slot) > 0) finite = false;
    if (value) last = local_loss_;
  } else if (machine_.slots().available(row)) {
    last = machine_.slots().view(row);
    if (badness(last).any) finite = false;
  }
  if (value && last.defined() && last.numel() == 1) *value = last.to(at::kDouble).item<double>();
  if (value && !std::isfinite(*value)) finite = false;
}

at::Tensor Run::value(TensorId row) {
  if (options_.local || !impl_.plan().graph.slot(row)) return {};
  return machine_.slots().available(row) ? machine_.slots().view(row) : at::Tensor();
}

RunResult Run::finish() {
  try {
    settle(TensorId{impl_.doc().loss}, result_.loss_finite, &result_.loss);
    for (const std::int32_t row : impl_.doc().gradients)
      settle(TensorId{row}, result_.gradients_finite, nullptr);
    for (const std::int32_t row : options_.keep) {
      const at::Tensor last = value(TensorId{row});
      result_.kept.push_back(last.defined() ? last.detach().clone() : last);
    }
  } catch (const std::exception&) {  // an op that makes them failed, and is counted
  }
  return std::move(result_);
}

}  // namespace nanquest::trace
