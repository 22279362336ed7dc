#include <ATen/ATen.h>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

void zero_all_non_finite(std::vector<at::Tensor>& outputs) {
  for (const at::Tensor& t : outputs) zero_non_finite(t);
}

/// Non-finite results of the op, and of its derivative, become 0.
TraceEdit without(const Case& c, std::int32_t op) {
  TraceEdit edit;
  edit.output_edit[op] = zero_all_non_finite;
  for (std::int32_t i = op + 1; i < static_cast<std::int32_t>(c.doc().ops.size()); ++i)
    if (c.forward_of(i) == op) edit.output_edit[i] = zero_all_non_finite;
  return edit;
}

}  // namespace

Change skip_op(const Case& c, std::int32_t op) {
  Change change;
  change.text = c.op_text(op) + " left out: 0 where it has no value, and nothing sent back from there";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  change.options.edit = without(c, op);
  if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    RunOptions options;
    options.edit = without(c, other);
    change.placebo = {options};
    change.placebo_text = "the same at " + c.op_with_number(other);
  }
  return change;
}

}  // namespace nanquest
