#include "replay/blame/range_overflow.h"

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "probe/trace/births.h"
#include "replay/lab/call_again.h"

namespace nanquest {
namespace {

/// How far inputs are moved: by this share of themselves, and at least by this much.
constexpr double kStep = 1e-3;

/// The suspect's call as recorded; nothing if it did not run.
std::optional<CallAgain> call_of(Lab& lab, OpId op) {
  std::optional<CallAgain> call;
  RunOptions options;
  options.scan = false;
  options.stop_after = op.row();
  options.edit.op_edit[op.row()] = [&](std::vector<c10::IValue>& stack) {
    call = CallAgain(lab.graph().op(op), stack).raised_to(at::kDouble);
    return false;
  };
  (void)lab.run(options);
  return call;
}

/// The result with every input moved by `way` steps.
std::vector<at::Tensor> moved(const CallAgain& call, int way) {
  return told_by(call.in(at::kDouble, [way](const at::Tensor& t) {
    return can_be_moved(t) ? t + way * kStep * (t.abs() + 1) : at::Tensor();
  }));
}

}  // namespace

bool is_range_overflow(Lab& lab, const Suspect& suspect) {
  if (suspect.row || !suspect.kinds.infinite) return false;
  const OpRow& row = lab.graph().op(suspect.op);
  if (row.flags & kOpBirthFiniteAbove) return true;
  if (!follows_from_inputs(row.flags)) return false;
  if (bad_constants(lab.graph().doc(), suspect.op).infinite ||
      lab.graph().read_counts(suspect.op).total() > 0)
    return false;
  const auto call = call_of(lab, suspect.op);
  if (!call) return false;
  const auto here = told_by(call->in(at::kDouble)), up = moved(*call, 1), down = moved(*call, -1);
  if (here.size() != up.size() || here.size() != down.size()) return false;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (!here[i].defined() || !here[i].is_floating_point() || here[i].sizes() != up[i].sizes() ||
        here[i].sizes() != down[i].sizes())
      continue;
    const at::Tensor stays =
        at::logical_and(at::isinf(here[i]), at::logical_and(at::isinf(up[i]), at::isinf(down[i])));
    if (stays.any().item<bool>()) return true;
  }
  return false;
}

}  // namespace nanquest
