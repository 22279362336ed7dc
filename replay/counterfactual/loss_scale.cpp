#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"
#include "replay/counterfactual/numbers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Decides is_number from the tables only, so that a long trace costs no run: a constant, a value from
/// outside, or the statistics of a tensor of one element.
bool is_number(const Case& c, const ArgRow& arg, double number) {
  if (arg.kind == ArgKind::real) return arg.real == number;
  if (arg.kind == ArgKind::integer) return static_cast<double>(arg.integer) == number;
  if (arg.kind != ArgKind::tensor || arg.tensor == kNone) return false;
  const SnapshotDoc& doc = c.doc();
  const TensorRow& t = doc.tensors[arg.tensor];
  if (!dtype_is_float(t.dtype) ||
      !std::all_of(t.sizes.begin(), t.sizes.end(), [](std::int64_t n) { return n == 1; }))
    return false;
  if (t.stats != kNone) return doc.stats[t.stats].amax == number;
  if (t.slot == kNone || doc.slots[t.slot].data.empty() || doc.slots[t.slot].bytes != dtype_size(t.dtype))
    return false;
  const auto stored = c.read(doc.slots[t.slot].data);
  return stored && stored->numel() == 1 && is_number(c10::IValue(*stored), number, NumberAs::one_element);
}

/// Ops that multiply by the loss scale: `loss * scale` and its derivative.
std::vector<std::int32_t> scaling_ops(const Case& c, double scale) {
  std::vector<std::int32_t> found;
  const SnapshotDoc& doc = c.doc();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i) {
    const OpRow& op = doc.ops[i];
    if (op.phase == Phase::optimizer || (op.name != "aten::mul" && op.name != "aten::mul_")) continue;
    for (std::int32_t a = 0; a < op.arg_count; ++a)
      if (is_number(c, doc.args[op.first_arg + a], scale)) {
        found.push_back(i);
        break;
      }
  }
  return found;
}

}  // namespace

std::optional<Change> smaller_loss_scale(const Case& c, int halvings) {
  const double scale = step_loss_scale(c), smaller = std::ldexp(scale, -halvings);
  if (scale <= 1 || smaller < 1) return std::nullopt;
  Change change;
  for (std::int32_t op : scaling_ops(c, scale))
    change.options.edit.op_edit[op] = [scale, smaller](std::vector<c10::IValue>& stack) {
      for (c10::IValue& v : stack) {
        if (!is_number(v, scale, NumberAs::one_element)) continue;
        v = with_number(v, smaller);
        return false;
      }
      return false;
    };
  if (change.options.edit.op_edit.empty()) return std::nullopt;
  change.text = "loss scale " + number_text(smaller) + " instead of " + number_text(scale);
  change.kind = ChangeKind::hyperparameter;
  change.size = ChangeSize::op;
  change.price = Price::other_format;  // a setting, which costs nothing
  add_precision_placebo(c, change, c.op_index(), Precision::fp32);
  return change;
}

}  // namespace nanquest
