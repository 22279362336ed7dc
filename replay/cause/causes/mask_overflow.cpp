// MASK_OVERFLOW: a mask constant leaves the range. All bad outputs are -Inf and stand where an input holds
// one and the same large negative constant. Its proof is not written yet.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

/// A finfo.min, or a round "minus a lot" such as -1e9: people write these, training does not compute them.
bool written_by_hand(double value) {
  const double decimal = std::log10(std::abs(value));
  return value == -65504 || value < -1e30 || (value <= -1e4 && decimal == std::round(decimal));
}

bool resembles(const Case& c, const Subject&) {
  const OpValues& values = c.values(c.op_index());
  if (values.outputs.empty() || !values.bad_output().is_floating_point()) return false;
  const at::Tensor out = wide(values.bad_output());
  const at::Tensor bad = bad_mask(out);
  if (count_true(bad) < 1 || count_true(bad) != count_true(out == -std::numeric_limits<double>::infinity()))
    return false;
  for (const at::Tensor& input : tensors_in(values.arguments)) {
    if (!input.is_floating_point()) continue;
    const auto same_shape = broadcast(wide(input), out.sizes());
    if (!same_shape) continue;
    const at::Tensor there = same_shape->masked_select(bad);
    const double low = there.min().item<double>(), high = there.max().item<double>();
    if (low == high && written_by_hand(low)) return true;
  }
  return false;
}

}  // namespace

NANQUEST_CAUSE(mask_overflow) = {
    .label = Label::mask_overflow,
    .yields_to = {Label::exp_overflow, Label::norm_overflow, Label::loss_scale, Label::empty_reduction,
                  Label::degenerate_linalg, Label::infeasible_target, Label::eps_underflow,
                  Label::logspace_inf_grad},
    .resembles = resembles,
};

}  // namespace nanquest
