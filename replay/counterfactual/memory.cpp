#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/verdict/numbers.h"

namespace nanquest {

Change filled_memory(const Case& c, const std::vector<std::int32_t>& ops, double value) {
  Change change;
  const bool handed_out = !(c.row(ops.front())->flags & kOpHostWrite);
  change.text = "memory that nobody had written" +
                (handed_out ? " (" + c.op_text(ops.front()) + ")" : std::string()) + " filled with " +
                number_text(value);
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const auto fill = [value](std::vector<at::Tensor>& written) {
    for (const at::Tensor& t : written)
      if (t.defined() && t.is_floating_point()) at::Tensor(t).fill_(value);
  };
  for (const std::int32_t op : ops) change.options.edit.output_edit[op] = fill;
  if (const std::int32_t other = placebo_op(c, ops.front()); other != kNone) {
    RunOptions options;
    options.edit.output_edit[other] = fill;
    change.placebo = {options};
    change.placebo_text = "what " + c.op_with_number(other) + " made filled with " + number_text(value);
  }
  return change;
}

Change computed_again(const Case& c, std::int32_t op) {
  Change change;
  change.text = c.op_text(op) + " computed again from the same inputs";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  const std::string& value = c.culprit().value;
  const double bad = value == word(BadValue::plus_inf)    ? std::numeric_limits<double>::infinity()
                     : value == word(BadValue::minus_inf) ? -std::numeric_limits<double>::infinity()
                                                          : std::numeric_limits<double>::quiet_NaN();
  RunOptions options;
  options.edit.output_edit[op] = [bad, at = c.culprit().first](std::vector<at::Tensor>& written) {
    if (written.empty() || !written[0].defined() || !written[0].is_floating_point()) return;
    at::Tensor element = written[0];
    if (element.dim() != static_cast<std::int64_t>(at.size())) element = element.flatten().select(0, 0);
    for (const std::int64_t i : at)
      if (element.dim() > 0) element = element.select(0, i);
    element.fill_(bad);
  };
  change.placebo = {options};
  change.placebo_text = "the same with " + number_text(bad) + " put where it was recorded";
  return change;
}

Change changed_before(const Case& c, std::int32_t slot, std::int32_t reader) {
  Change change;
  change.text = c.slot_text(slot) + " good until " + c.op_with_number(reader) +
                " reads it, and as in the file from then on";
  change.kind = ChangeKind::data;
  change.price = Price::data_repair;
  const auto as_in_file = std::make_shared<at::Tensor>();
  change.options.edit.slot_edit[slot] = [as_in_file](at::Tensor& storage) {
    if (!can_be_bad(storage)) return;
    *as_in_file = storage.clone();
    zero_non_finite(storage);
  };
  std::size_t position = 0;
  for (const Case::TensorArgument& a : c.tensor_arguments(reader))
    if (c.doc().tensors[static_cast<std::size_t>(a.tensor)].slot == slot)
      position = static_cast<std::size_t>(a.position);
  change.options.edit.op_edit[reader] = [as_in_file, position](std::vector<c10::IValue>& stack) {
    const at::Tensor t = position < stack.size() ? tensor_of(stack[position]) : at::Tensor();
    if (t.defined() && as_in_file->defined() && t.scalar_type() == as_in_file->scalar_type() &&
        t.storage().nbytes() == as_in_file->nbytes())
      t.as_strided({as_in_file->numel()}, {1}, 0).copy_(*as_in_file);
    return false;
  };
  return change;
}

Change undone_write(const Case& c, std::int32_t host_write) {
  Change change;
  const std::int32_t slot = c.doc().tensors[static_cast<std::size_t>(c.row(host_write)->first_output)].slot;
  change.text = "what was written into " + c.slot_text(slot) + " while the step read it, taken back";
  change.kind = ChangeKind::data;
  change.size = ChangeSize::op;
  change.price = Price::data_repair;
  // The bytes as an op last read them, before the write.
  std::int32_t reader = kNone;
  std::size_t position = 0;
  for (const TraceGraph::Read& read : c.graph().reads(SlotId{slot})) {
    if (read.op.row() >= host_write) break;
    for (const Case::TensorArgument& a : c.tensor_arguments(read.op.row()))
      if (a.tensor == read.row.row()) reader = read.op.row(), position = static_cast<std::size_t>(a.position);
  }
  if (reader == kNone) return change;
  const auto bytes = std::make_shared<at::Tensor>();
  change.options.edit.op_edit[reader] = [bytes, position](std::vector<c10::IValue>& stack) {
    const at::Tensor t = position < stack.size() ? tensor_of(stack[position]) : at::Tensor();
    if (t.defined()) {
      const auto n = static_cast<std::int64_t>(t.storage().nbytes() / t.element_size());
      *bytes = t.as_strided({n}, {1}, 0).clone();
    }
    return false;
  };
  change.options.edit.output_edit[host_write] = [bytes](std::vector<at::Tensor>& written) {
    if (written.empty() || !written[0].defined() || !bytes->defined()) return;
    if (written[0].numel() == bytes->numel()) written[0].copy_(bytes->to(written[0].scalar_type()));
  };
  // Another outside storage with as small a change.
  if (const std::int32_t other = placebo_slot(c, slot); other != kNone) {
    RunOptions options;
    options.edit.slot_edit[other] = [](at::Tensor& storage) {
      if (storage.is_floating_point()) storage.mul_(0.75);
    };
    change.placebo = {options};
    change.placebo_text = c.slot_text(other) + " made a quarter smaller";
  }
  return change;
}

}  // namespace nanquest
