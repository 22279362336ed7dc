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

/// Ops that give of a gradient something that is still about that gradient.
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

std::optional<LossScale> loss_scale_of(const Case& c) {
  const std::int32_t op = loss_after(c, kNone);
  const OpRow* row = c.row(op);
  if (!row || plain_name(*row) != "mul") return std::nullopt;
  LossScale scale{.op = op};
  bool other_is_made = false, found = false;
  std::set<std::size_t> tensors;
  for (const Case::TensorArgument& a : c.tensor_arguments(op)) {
    const auto position = static_cast<std::size_t>(a.position);
    tensors.insert(position);
    const TensorRow& t = c.doc().tensors[static_cast<std::size_t>(a.tensor)];
    if (!one_element(t)) return std::nullopt;
    const bool made = c.producer(a.tensor, op) != kNone && !(t.flags & kTensorWrappedNumber);
    const OpRow* maker = c.row(c.producer(a.tensor, op));
    // A scale may have been moved or cast; a loss is computed.
    const bool moved = maker && c.tensor_arguments(c.producer(a.tensor, op)).size() == 1 &&
                       c.producer(c.tensor_arguments(c.producer(a.tensor, op))[0].tensor,
                                  c.producer(a.tensor, op)) == kNone &&
                       (plain_name(*maker) == "_to_copy" || plain_name(*maker) == "clone");
    if (made && !moved) {
      other_is_made = true;
      continue;
    }
    const auto value = number_at(c, op, position);
    if (!value) return std::nullopt;
    scale.tensor = moved ? c.tensor_arguments(c.producer(a.tensor, op))[0].tensor : a.tensor;
    scale.slot = c.doc().tensors[static_cast<std::size_t>(scale.tensor)].slot;
    scale.value = *value;
    found = true;
  }
  for (std::size_t i = 0; i < c.values(op).arguments.size() && !found; ++i)
    if (const auto value = number_at(c, op, i); value && !tensors.count(i))
      scale.value = *value, found = true;
  return found && other_is_made ? std::optional(scale) : std::nullopt;
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
  return stack.empty() ? "" : stack.front();
}

}  // namespace nanquest
