#include "replay/cause/numbers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "probe/trace/op_numbers.h"
#include "replay/blame/suspects.h"
#include "replay/case/origin.h"
#include "replay/case/values.h"

namespace nanquest {
namespace {

/// The op by which the program put a number of its own into a tensor: bytes from the host, or an op with only
/// constant arguments. Follows ops that only move it; kNone if it is no such number.
std::int32_t writer_of_number(const Case& c, std::int32_t tensor, std::int32_t before) {
  for (int hops = 0; hops < 6; ++hops) {
    const OpRow* maker = c.row(c.producer(tensor, before));
    if (!maker) return kNone;
    const std::int32_t op = c.producer(tensor, before);
    if (maker->flags & kOpHostWrite) return op;
    const auto arguments = c.tensor_arguments(op);
    const std::string name = plain_name(*maker);
    if (name == "scalar_tensor" || name == "full" || name == "fill") return arguments.size() > 1 ? kNone : op;
    if (!moves_elements(maker->name) || arguments.empty()) return kNone;
    tensor = name == "copy" ? arguments.back().tensor : arguments.front().tensor;
    before = op;
  }
  return kNone;
}

/// What is learned, or gathered over steps, was not chosen.
bool is_chosen(const Case& c, std::int32_t slot, std::int32_t reader) {
  const SlotOrigin origin = c.doc().slots[static_cast<std::size_t>(slot)].origin;
  if (origin == SlotOrigin::parameter || origin == SlotOrigin::gradient) return false;
  return origin != SlotOrigin::optimizer_state || c.row(reader)->phase == Phase::optimizer;
}

/// The op that computed it from numbers alone that the user chose, all without dimensions; kNone if anything
/// else went into it.
std::int32_t computed_from_numbers(const Case& c, std::int32_t tensor, std::int32_t before, int hops = 6) {
  const std::int32_t maker = c.producer(tensor, before);
  if (hops == 0 || !c.row(maker) || (c.row(maker)->flags & (kOpSeeded | kOpUninitialised))) return kNone;
  for (const Case::TensorArgument& a : c.tensor_arguments(maker)) {
    const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(a.tensor)];
    if (!row.sizes.empty() || row.slot == kNone) return kNone;
    if (row.flags & kTensorWrappedNumber) continue;
    const bool chosen = c.producer(a.tensor, maker) == kNone
                            ? is_chosen(c, row.slot, before)
                            : writer_of_number(c, a.tensor, maker) != kNone ||
                                  computed_from_numbers(c, a.tensor, maker, hops - 1) != kNone;
    if (!chosen) return kNone;
  }
  return maker;
}

}  // namespace

std::vector<Number> numbers_of(const Case& c, std::int32_t op) {
  std::vector<Number> found;
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  std::set<std::size_t> tensors;
  for (const Case::TensorArgument& a : c.tensor_arguments(op)) {
    const auto position = static_cast<std::size_t>(a.position);
    tensors.insert(position);
    const auto value = number_at(c, op, position);
    const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(a.tensor)];
    const bool outside = c.producer(a.tensor, op) == kNone || (row.flags & kTensorWrappedNumber);
    if (!value || !dtype_is_float(row.dtype) || row.slot == kNone) continue;
    if (!outside) {
      if (const std::int32_t writer = row.sizes.empty() ? writer_of_number(c, a.tensor, op) : kNone;
          writer != kNone)
        found.push_back({position, argument_name(*c.row(op), position), *value, kNone, writer});
      else if (const std::int32_t maker = row.sizes.empty() ? computed_from_numbers(c, a.tensor, op) : kNone;
               maker != kNone)
        found.push_back({position, argument_name(*c.row(op), position), *value, kNone, maker, true});
      continue;
    }
    const SlotOrigin origin = c.doc().slots[static_cast<std::size_t>(row.slot)].origin;
    if (!is_chosen(c, row.slot, op)) continue;
    // A tensor with dimensions holds what was computed or loaded before the step, also if it is a single
    // element.
    if (!row.sizes.empty() && origin != SlotOrigin::optimizer_state) continue;
    found.push_back({position, argument_name(*c.row(op), position), *value,
                     (row.flags & kTensorWrappedNumber) ? kNone : a.tensor});
  }
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isDouble() || (arguments[i].isScalar() && !tensors.count(i)))
      if (const auto value = number_at(c, op, i)) found.push_back({i, argument_name(*c.row(op), i), *value});
  return found;
}

bool writes_marks(const std::string& op) {
  static const std::set<std::string> names = {"fill",
                                              "full",
                                              "full_like",
                                              "new_full",
                                              "masked_fill",
                                              "where",
                                              "scalar_tensor",
                                              "nan_to_num",
                                              "constant_pad_nd",
                                              "clamp",
                                              "clamp_min",
                                              "clamp_max",
                                              "threshold",
                                              "index_fill",
                                              "index_put",
                                              "_index_put_impl",
                                              "masked_scatter",
                                              "slice_scatter",
                                              "select_scatter",
                                              "lift_fresh",
                                              "copy",
                                              "_to_copy",
                                              "clone",
                                              "eq",
                                              "ne",
                                              "lt",
                                              "gt",
                                              "le",
                                              "ge",
                                              "scatter",
                                              "triu",
                                              "tril",
                                              "maximum",
                                              "minimum"};
  return names.count(op) > 0;
}

std::string role_of(const Case& c, std::int32_t op, const Number& n) {
  std::string argument = n.name + " of " + c.row(op)->name;
  if (n.name == "lr") return "the learning rate (" + argument + ")";
  if (c.row(op)->phase != Phase::optimizer) return argument;
  const auto arguments = c.tensor_arguments(op);
  const bool on_weights = std::any_of(arguments.begin(), arguments.end(), [&](const Case::TensorArgument& a) {
    const std::int32_t slot = c.doc().tensors[static_cast<std::size_t>(a.tensor)].slot;
    return a.position == 0 && slot != kNone &&
           c.doc().slots[static_cast<std::size_t>(slot)].origin == SlotOrigin::parameter;
  });
  if (!on_weights) return argument;
  if (n.name == "alpha" || n.name == "value") return "the step size (the learning rate; " + argument + ")";
  if (plain_name(*c.row(op)) == "mul")
    return "the factor on the weights (1 - learning rate * weight decay; " + argument + ")";
  return argument;
}

bool works_on_data(const Case& c, std::int32_t op) {
  const auto of_a_model = [&](OpId maker, TensorId row) {
    if (maker && !c.graph().module_of(maker).empty()) return true;
    if (!row || !c.graph().slot(row)) return false;
    const SlotOrigin origin = get(c.doc(), c.graph().slot(row)).origin;
    return origin != SlotOrigin::produced && origin != SlotOrigin::input && origin != SlotOrigin::external;
  };
  const OpId self{op};
  PerRow<OpRow, bool> came_from = ancestors(c.graph(), self);
  // The memory that it writes into keeps values that others wrote.
  for (const TensorId row : c.graph().written(self)) {
    if (!row) continue;
    if (!c.graph().producer(row, self) && of_a_model({}, row)) return false;
    const SlotId slot = c.graph().slot(row);
    for (const TraceGraph::Write& write : c.graph().writes(slot)) {
      if (!(write.op < self)) continue;
      const PerRow<OpRow, bool> behind = ancestors(c.graph(), write.op);
      for (const OpId before : c.graph().ops())
        if (behind[before]) came_from[before] = true;
    }
  }
  for (const OpId before : c.graph().ops()) {
    if (!came_from[before]) continue;
    if (of_a_model(before, {})) return false;
    for (const TensorId row : c.graph().reads(before))
      if (of_a_model({}, row)) return false;
  }
  return true;
}

bool is_selection(const Case& c, std::int32_t op, std::size_t position) {
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  const at::Tensor t = position < arguments.size() ? operand_of(arguments[position]) : at::Tensor();
  if (!t.defined() || t.is_complex() || !is_zero_or_one(wide(t))) return false;
  if (t.scalar_type() == at::kBool) return true;
  std::int32_t maker = computed_by(c, op, argument_name(*c.row(op), position));
  for (int hops = 0; hops < 6 && c.row(maker); ++hops) {
    if (c.row(maker)->flags & kOpHostWrite) return true;
    const std::vector<at::Tensor>& made = c.values(maker).outputs;
    if (made.empty() || !made[0].defined()) return false;
    if (!made[0].is_floating_point()) return true;
    // 1 - mask, mask * mask, and constants of 0 and 1.
    if (c.is_one_of(maker, {"zeros", "ones", "zeros_like", "ones_like", "full", "full_like", "triu", "tril",
                            "eye", "masked_fill", "one_hot", "scatter", "fill"}))
      return true;
    if (!c.is_one_of(maker, {"sub", "rsub", "mul", "minimum", "maximum"}) || !is_zero_or_one(wide(made[0])))
      return false;
    for (const at::Tensor& from : tensors_in(c.values(maker).arguments))
      if (!is_zero_or_one(wide(from))) return false;
    maker = computed_by(c, maker, "self");
  }
  return true;
}

}  // namespace nanquest
