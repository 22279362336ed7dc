#include "replay/cause/known_data.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/trace/op_numbers.h"
#include "probe/trace/origins.h"
#include "probe/trace/samples.h"
#include "replay/case/values.h"

namespace nanquest {

SlotId kept_by_copy(const Case& c, std::int32_t op) {
  if (!c.is_one_of(op, {"copy"})) return {};
  for (const Case::TensorArgument& a : c.tensor_arguments(op)) {
    const SlotId slot = c.graph().slot(TensorId{a.tensor});
    if (a.position != 0 || !slot) continue;
    const SlotOrigin origin = state_origin(c, slot);
    if (origin != SlotOrigin::produced && !comes_with_batch(origin)) return slot;
  }
  return {};
}

namespace {

/// A product or quotient with one number, as codes are scaled when a checkpoint is read: what is bad before
/// it is bad behind it.
bool is_scaled(const Case& c, std::int32_t op) {
  if (!c.is_one_of(op, {"mul", "div"})) return false;
  const auto arguments = c.tensor_arguments(op);
  return std::count_if(arguments.begin(), arguments.end(), [&](const Case::TensorArgument& a) {
           const auto& sizes = c.doc().tensors[a.tensor].sizes;
           return std::any_of(sizes.begin(), sizes.end(), [](std::int64_t n) { return n != 1; });
         }) == 1;
}

/// Casts and other moves between a value from outside and the copy that keeps it.
constexpr int kMostMoves = 4;

SlotId state_copied_into(const Case& c, std::int32_t op, int moves) {
  if (const SlotId slot = kept_by_copy(c, op)) {
    const SlotOrigin origin = state_origin(c, slot);
    const bool inside = c.row(op)->phase == Phase::backward || !c.module_of(op).empty();
    if (origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state) return slot;
    return origin == SlotOrigin::buffer && !inside ? slot : SlotId{};
  }
  SlotId found;
  if (moves == 0 || !c.row(op) || !(moves_elements(c.row(op)->name) || is_scaled(c, op))) return {};
  for (const std::int32_t reader : c.readers(op))
    if (found = state_copied_into(c, reader, moves - 1); !found) return {};
  return found;
}

}  // namespace

std::vector<std::int64_t> bad_samples(const Case& c, const at::Tensor& tensor) {
  std::vector<std::int64_t> found;
  const std::int64_t batch = batch_size(c.doc());
  if (batch < 1 || tensor.dim() == 0 || tensor.size(0) != batch) return found;
  for (std::int64_t s = 0; s < batch; ++s)
    if (!all_finite(tensor.select(0, s))) found.push_back(s);
  return found;
}

bool is_given_to_model(const Case& c, const OutsideValue& value) {
  const auto& batch = c.doc().batch;
  return std::any_of(batch.begin(), batch.end(), [&](const NamedTensor& t) { return t.name == value.name; });
}

bool is_target(const Case& c, const OutsideValue& value) {
  if (!c.op()) return false;
  const auto target = argument_position(*c.op(), "target");
  for (const Case::TensorArgument& a : c.tensor_arguments(c.op_index()))
    if (target && a.position == static_cast<int>(*target) &&
        c.graph().slot(TensorId{a.tensor}) == SlotId{value.slot})
      return true;
  return false;
}

SlotOrigin state_origin(const Case& c, SlotId slot) {
  const SlotOrigin origin = origin_of(c.graph(), slot);
  if (origin != SlotOrigin::produced || get(c.doc(), slot).name.empty()) return origin;
  const auto& tensors = c.doc().tensors;
  const bool trained = std::any_of(tensors.begin(), tensors.end(), [&](const TensorRow& row) {
    return row.slot == slot.row() && (row.flags & kTensorRequiresGrad);
  });
  return trained ? SlotOrigin::parameter : origin;
}

SlotId state_copied_into(const Case& c, std::int32_t op) {
  return state_copied_into(c, op, kMostMoves);
}

}  // namespace nanquest
