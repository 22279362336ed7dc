// BAD_STATE: a weight, buffer or optimizer state was bad when the step began. Proof: the stored tensor. The
// step that spoiled it lies before this one, so this snapshot can't name it.
#include <ATen/ATen.h>

#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/outside_value.h"

namespace nanquest {
namespace {

std::optional<Finding> examine(const Case& c, const Subject&) {
  const auto value = outside_value(c);
  if (!value || value->group == "batch") return std::nullopt;
  Finding f;
  f.source = "the " + value->group + " as stored in the snapshot, at the start of the step";
  f.evidence.push_back({"non-finite in " + value->name, bad_text(value->tensor)});
  f.explanation = "The step began with a bad value: " + value->name + " (" + value->group +
                  ") already held " + bad_text(value->tensor) + ". " + c.op_text(c.op_index()) +
                  " is the first op that reads it; the damage was done in an earlier step or in the file "
                  "it was loaded from.";
  f.advice = value->group == "buffers" ? "Load the last good checkpoint; a running statistic keeps one bad "
                                         "batch for ever, so undo skipped steps "
                                         "completely or reset the statistic."
                                       : "Load the last good checkpoint; check gradients before clipping "
                                         "and the optimizer, so that a bad step "
                                         "never writes state.";
  if (value->slot != kNone) f.wanted.push_back(replace_non_finite(c, value->slot, value->name));
  return f;
}

}  // namespace

NANQUEST_CAUSE(bad_state) = {
    .label = Label::bad_state,
    .origins = {Origin::parameter, Origin::buffer, Origin::optimizer_state},
    .examine = examine,
};

}  // namespace nanquest
