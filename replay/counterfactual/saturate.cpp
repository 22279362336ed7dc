#include <ATen/ATen.h>

#include <limits>

#include "replay/cause/case.h"
#include "replay/cause/values.h"
#include "replay/counterfactual/change.h"

namespace nanquest {
namespace {

void saturate(std::vector<at::Tensor>& outputs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (at::Tensor& t : outputs) {
    const auto limit = t.defined() ? format_max(t) : std::nullopt;
    if (!limit) continue;
    t.masked_fill_(t == infinity, *limit / 2);
    t.masked_fill_(t == -infinity, -*limit / 2);
  }
}

}  // namespace

Change saturate_result(const Case& c, std::int32_t op) {
  Change change;
  change.text = c.op_text(op) + " ending at half the format's range instead of at infinity";
  change.kind = ChangeKind::op;
  change.size = ChangeSize::op;
  change.price = Price::protect_op;
  change.options.edit.output_edit[op] = saturate;
  if (const std::int32_t other = placebo_op(c, op); other != kNone) {
    RunOptions options;
    options.edit.output_edit[other] = saturate;
    change.placebo = {options};
    change.placebo_text = "the same at " + c.op_text(other) + " (op " + std::to_string(other) + ")";
  }
  return change;
}

}  // namespace nanquest
