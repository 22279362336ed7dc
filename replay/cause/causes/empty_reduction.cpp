// EMPTY_REDUCTION: a mean, a deviation, an extreme or a loss over no element (for a deviation: over one). Its
// proof is not written yet.
#include <ATen/ATen.h>

#include "replay/cause/cause.h"
#include "replay/cause/values.h"

namespace nanquest {
namespace {

bool resembles(const Case& c, const Subject& reduction) {
  if (reduction.op == "nll_loss_forward") return true;  // what it averages over are the targets that count
  const auto reduced = tensors_in({argument(c, c.op_index(), reduction.argument)});
  return reduced.empty() || reduced[0].numel() <= 1;
}

}  // namespace

NANQUEST_CAUSE(empty_reduction) = {
    .label = Label::empty_reduction,
    .ops = {{"mean", "self"},
            {"std", "self"},
            {"var", "self"},
            {"max", "self"},
            {"min", "self"},
            {"amax", "self"},
            {"amin", "self"},
            {"nll_loss_forward", "self"},
            {"std_mean", "self"},
            {"var_mean", "self"}},
    .resembles = resembles,
};

}  // namespace nanquest
