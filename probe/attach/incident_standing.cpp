// What the standing trace has on record, as a file: the step that runs, or the one whose update did the
// damage.
#include <ATen/ATen.h>

#include <algorithm>

#include "probe/attach/trace.h"
#include "probe/capture/finish.h"

namespace nanquest::attach {

Status AttachSession::write_standing(standing::Step& step, const RoundFacts& facts, Gate gate,
                                     const std::string& path) {
  const bool runs = &step == standing_->trace().current();
  StandingTables tables(standing_->trace(), step);
  const NamedTensors buffers = buffers_.living(), states = states_.living();
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    tables.announce(parameters_.name(i), parameters_.tensor(i).address(), SlotOrigin::parameter);
  for (const auto& [name, tensor] : buffers) tables.announce(name, tensor, SlotOrigin::buffer);
  for (const auto& [name, tensor] : states) tables.announce(name, tensor, SlotOrigin::optimizer_state);
  for (std::size_t i = 0; i < facts.batch.size(); ++i)
    tables.announce(facts.batch.name(i), facts.batch.tensor(i).address(), SlotOrigin::input);
  tables.build();
  SnapshotDoc& doc = tables.recording.doc;
  fill_header(doc, state_of_step(facts));
  doc.gate = gate;
  doc.basis = "survivors";
  doc.writer += ", standing trace";
  // Loss and gradients of a step that is over are gone.
  if (runs) doc.loss = tables.describe(losses_.telling());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor weight = parameters_.tensor(i).lock();
    if (!weight.defined()) continue;
    const at::Tensor& updated = gate_.parameters()[i];
    doc.gradients.push_back(runs && updated.defined() ? tables.describe(updated.grad()) : kNone);
    doc.parameters.push_back(tables.keep_first("parameters", parameters_.name(i), weight));
  }
  for (const auto& [name, tensor] : buffers)
    doc.buffers.push_back(tables.keep_first("buffers", name, tensor));
  for (const auto& [name, tensor] : states)
    doc.optimizer.push_back(tables.keep_first("optimizer", name, tensor));
  for (std::size_t i = 0; i < facts.batch.size(); ++i) {
    const WeakTensor& batch = facts.batch.tensor(i);
    at::Tensor tensor = batch.lock();
    if (!tensor.defined()) tensor = batch.over(tables.first_value(batch.address()));
    if (tensor.defined())
      doc.batch.push_back(tables.keep_first("batch", facts.batch.name(i), tensor, batch.address()));
  }
  tables.hash_survivors();
  symbolise_all(doc, tables.stacks());
  return write_snapshot(tables.recording, path);
}

const KeptRound* AttachSession::who_spoiled(std::string& name, bool update_made) {
  if (!standing_ || standing_->empty()) return nullptr;
  for (const NamedList* list : {&parameters_, &states_}) {
    // Before its update, what an optimizer keeps has harmed nobody in this step.
    if (list == &states_ && !update_made) continue;
    const NamedTensors all = list->living();
    const std::string bad = first_non_finite(state_pass_, all);
    if (bad.empty()) continue;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.first == bad; });
    // Was it so when this step began?
    if (trace_) {
      const at::Tensor first = first_value(found->second);
      if (first.defined() && all_finite(first)) continue;
    }
    name = bad;
    return standing_->who_spoiled(found->second, round_ + (trace_ ? 0 : 1));
  }
  return nullptr;
}

bool AttachSession::on_record() {
  return trace_ && (!trace_->stands() || standing_->trace().find(trace_->round));
}

at::Tensor AttachSession::first_value(const at::Tensor& tensor) {
  if (!trace_->stands()) return trace_->recorder()->first_value(tensor);
  standing::Step* step = standing_->trace().find(trace_->round);
  return step ? StandingTables(standing_->trace(), *step).first_value(tensor) : at::Tensor();
}

}  // namespace nanquest::attach
