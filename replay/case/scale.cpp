#include "replay/case/scale.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "replay/case/branch.h"
#include "replay/case/origin.h"
#include "replay/case/values.h"

namespace nanquest {
namespace {

bool one_element(const TensorRow& t) {
  return std::all_of(t.sizes.begin(), t.sizes.end(), [](std::int64_t n) { return n == 1; });
}

/// Ops whose result from a gradient still describes that gradient.
bool keeps_gradient(const OpRow& op) {
  static const std::set<std::string> names = {
      "_to_copy", "clone", "copy", "mul",   "div", "pow",  "square",
      "detach",   "abs",   "cat",  "stack", "sum", "norm", "linalg_vector_norm"};
  return names.count(plain_name(op)) > 0;
}

bool is_gradient(const Case& c, std::int32_t tensor, std::int32_t before, int hops) {
  const SnapshotDoc& doc = c.doc();
  const TensorRow& row = doc.tensors[static_cast<std::size_t>(tensor)];
  if (row.slot == kNone || !dtype_is_float(row.dtype)) return false;
  if (doc.slots[static_cast<std::size_t>(row.slot)].origin == SlotOrigin::gradient) return true;
  for (const std::int32_t g : doc.gradients)
    if (g != kNone && doc.tensors[static_cast<std::size_t>(g)].slot == row.slot) return true;
  const std::int32_t maker = c.producer(tensor, before);
  const OpRow* op = c.row(maker);
  if (!op) return false;
  if (op->phase == Phase::backward) return true;
  if (hops == 0 || !keeps_gradient(*op)) return false;
  const auto arguments = c.tensor_arguments(maker);
  return std::any_of(arguments.begin(), arguments.end(), [&](const Case::TensorArgument& a) {
    return is_gradient(c, a.tensor, maker, hops - 1);
  });
}

}  // namespace

bool is_gradient(const Case& c, std::int32_t tensor, std::int32_t before) {
  return is_gradient(c, tensor, before, 4);
}

namespace {

/// Row `tensor` is one number, made only of such numbers from outside: nothing that the step computed is part
/// of it.
bool is_made_of_numbers(const Case& c, std::int32_t tensor, std::int32_t before, int hops = 6) {
  const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(tensor)];
  if (!one_element(row)) return false;
  const std::int32_t maker = c.producer(tensor, before);
  if (maker == kNone) {
    const SlotOrigin origin =
        row.slot == kNone ? SlotOrigin::external : c.doc().slots[static_cast<std::size_t>(row.slot)].origin;
    return origin != SlotOrigin::parameter && origin != SlotOrigin::gradient;
  }
  if (c.row(maker)->flags & kOpHostWrite) return true;
  const auto arguments = c.tensor_arguments(maker);
  return hops > 0 && std::all_of(arguments.begin(), arguments.end(), [&](const Case::TensorArgument& a) {
           return is_made_of_numbers(c, a.tensor, maker, hops - 1);
         });
}

/// The number by which `op` multiplies or divides something computed; nothing if it is no such op.
std::optional<LossScale> factor_of(const Case& c, std::int32_t op) {
  if (!c.is_one_of(op, {"mul", "div"})) return std::nullopt;
  const bool divides = plain_name(*c.row(op)) == "div";
  LossScale scale{.op = op};
  bool other_is_made = false, found = false;
  std::set<std::size_t> tensors;
  for (const Case::TensorArgument& a : c.tensor_arguments(op)) {
    const auto position = static_cast<std::size_t>(a.position);
    const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(a.tensor)];
    tensors.insert(position);
    const bool number = (row.flags & kTensorWrappedNumber) || is_made_of_numbers(c, a.tensor, op);
    if (!number || (divides && position == 0)) {
      other_is_made = other_is_made || c.producer(a.tensor, op) != kNone;
      continue;
    }
    const auto value = number_at(c, op, position);
    if (!value || found) return std::nullopt;
    scale.tensor = a.tensor;
    // A scale that was only moved or cast is still the same scale.
    for (std::int32_t maker = c.producer(a.tensor, op), hops = 0;
         maker != kNone && hops < 4 && c.is_one_of(maker, {"_to_copy", "clone", "detach", "lift_fresh"}) &&
         !c.tensor_arguments(maker).empty();
         ++hops) {
      scale.tensor = c.tensor_arguments(maker).front().tensor;
      maker = c.producer(scale.tensor, maker);
    }
    scale.slot = c.doc().tensors[static_cast<std::size_t>(scale.tensor)].slot;
    scale.value = divides ? 1 / *value : *value;
    found = true;
  }
  for (std::size_t i = divides ? 1 : 0; i < c.values(op).arguments.size() && !found; ++i)
    if (const auto value = number_at(c, op, i); value && !tensors.count(i))
      scale.value = divides ? 1 / *value : *value, found = true;
  return found && other_is_made ? std::optional(scale) : std::nullopt;
}

/// Gradients are multiplied or divided by a number after backward: a loss scale is removed again.
bool is_taken_out(const Case& c) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (c.row(i)->phase != Phase::optimizer || !c.is_one_of(i, {"mul", "div"})) continue;
    const auto arguments = c.tensor_arguments(i);
    if (!arguments.empty() && is_gradient(c, arguments.front().tensor, i)) return true;
  }
  return false;
}

/// The gradient with which the program started backward, if it set one.
std::optional<LossScale> seed_of_backward(const Case& c) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i) {
    if (c.row(i)->phase != Phase::backward || (c.row(i)->flags & kOpRecompute)) continue;
    for (const Case::TensorArgument& a : c.tensor_arguments(i)) {
      const std::int32_t maker = c.producer(a.tensor, i);
      const bool given = maker == kNone || (c.row(maker)->flags & kOpHostWrite);
      const TensorRow& row = c.doc().tensors[static_cast<std::size_t>(a.tensor)];
      const auto value = number_at(c, i, static_cast<std::size_t>(a.position));
      if (!given || !value || (row.flags & kTensorWrappedNumber) || !is_made_of_numbers(c, a.tensor, i))
        continue;
      return LossScale{i, a.tensor, row.slot, *value};
    }
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<LossScale> loss_scale_of(const Case& c) {
  std::int32_t op = loss_after(c, kNone);
  // A scale may be applied before the loss is summed, or by division; then only its removal distinguishes it
  // from a weight or a count.
  for (int hops = 0; hops < 3 && c.row(op); ++hops) {
    const bool plain = hops == 0 && c.is_one_of(op, {"mul"});
    if (auto scale = factor_of(c, op); scale && (plain || is_taken_out(c))) return scale;
    if (!c.is_one_of(op, {"sum", "mean", "_to_copy", "clone", "div"}) || c.tensor_arguments(op).empty())
      break;
    op = c.producer(c.tensor_arguments(op).front().tensor, op);
  }
  auto seed = seed_of_backward(c);
  return seed && is_taken_out(c) ? seed : std::nullopt;
}

double step_loss_scale(const Case& c) {
  if (c.doc().loss_scale != 1) return c.doc().loss_scale;
  const auto found = loss_scale_of(c);
  return found ? found->value : 1;
}

std::string called_from(const Case& c, std::int32_t op) {
  const OpRow* row = c.row(op);
  if (!row || row->stack == kNone) return "";
  const auto& stack = c.doc().stacks[static_cast<std::size_t>(row->stack)];
  // PyTorch's own files say nothing about the program.
  const auto own = std::find_if(stack.begin(), stack.end(), [](const std::string& frame) {
    return frame.find("/site-packages/torch/") == std::string::npos;
  });
  return stack.empty() ? "" : own == stack.end() ? stack.front() : *own;
}

}  // namespace nanquest
