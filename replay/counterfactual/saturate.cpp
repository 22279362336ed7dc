#include <ATen/ATen.h>

#include <limits>

#include "replay/case/case.h"
#include "replay/case/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

/// Clamps to half the range of the format that `op` was recorded in, whatever the step runs in.
std::function<void(std::vector<at::Tensor>&)> saturating(const Case& c, std::int32_t op) {
  std::vector<std::optional<double>> limits;
  for (const at::Tensor& t : c.values(op).outputs)
    limits.push_back(t.defined() ? format_max(t) : std::nullopt);
  return [limits](std::vector<at::Tensor>& outputs) {
    for (std::size_t i = 0; i < outputs.size() && i < limits.size(); ++i)
      if (outputs[i].defined() && limits[i])
        outputs[i].copy_(at::where(at::isnan(outputs[i]), outputs[i],
                                   at::clamp(outputs[i], -*limits[i] / 2, *limits[i] / 2)));
  };
}

}  // namespace

Change saturate_result(const Case& c, std::int32_t op) {
  Change change;
  change.text = c.op_text(op) + " ending at half the format's range instead of at infinity";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  change.options.edit.output_edit[op] = saturating(c, op);
  if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    RunOptions options;
    options.edit.output_edit[other] = saturating(c, other);
    change.placebo = {options};
    change.placebo_text = "the same at " + c.op_with_number(other);
  }
  return change;
}

}  // namespace nanquest
