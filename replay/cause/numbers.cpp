#include "replay/cause/numbers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "replay/case/origin.h"
#include "replay/case/values.h"

namespace nanquest {

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
    if (!value || !outside || !dtype_is_float(row.dtype) || row.slot == kNone) continue;
    const SlotOrigin origin = c.doc().slots[static_cast<std::size_t>(row.slot)].origin;
    // What is learned, or gathered over steps, nobody chose; a batch of one number is data.
    if (origin == SlotOrigin::parameter || origin == SlotOrigin::gradient) continue;
    if (origin == SlotOrigin::optimizer_state && c.row(op)->phase != Phase::optimizer) continue;
    if (!row.sizes.empty() && origin != SlotOrigin::external && origin != SlotOrigin::optimizer_state)
      continue;
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

std::vector<at::Tensor> other_tensors(const Case& c, std::int32_t op, std::size_t position) {
  std::vector<at::Tensor> found;
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (const at::Tensor t = i == position ? at::Tensor() : tensor_of(arguments[i]); t.defined())
      found.push_back(t);
  return found;
}

}  // namespace nanquest
