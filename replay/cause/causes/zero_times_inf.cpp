// ZERO_TIMES_INF: 0 · inf where the infinity itself was meant. Its proof is not written yet.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

bool resembles(const Case& c, const Subject&) {
  const OpValues& values = c.values(c.op_index());
  bool zeros = false;
  for (const at::Tensor& t : tensors_in(values.arguments))
    zeros = zeros || (t.is_floating_point() && count_true(t == 0) > 0);
  return zeros && reads_infinity(values);
}

}  // namespace

NANQUEST_CAUSE(zero_times_inf) = {
    .label = Label::zero_times_inf,
    .ops = {{"mul", ""}, {"mm", ""}, {"bmm", ""}, {"addmm", ""}, {"baddbmm", ""}, {"dot", ""}, {"mv", ""}},
    .yields_to = {Label::logspace_inf_grad, Label::mask_overflow},
    .resembles = resembles,
};

}  // namespace nanquest
