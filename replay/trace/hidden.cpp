#include "replay/trace/hidden.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>

namespace nanquest::trace {

void HiddenFollower::before(OpId op) {
  reader_.reset();
  const OpPlan& plan = plan_.ops[op];
  if (!overflows_.any() || !plan.handle || (plan_.graph.op(op).flags & kOpUninitialised)) return;
  std::vector<bool> written;
  for (const ArgPlan& arg : plan.args) written.push_back(arg.written);
  try {
    const bool can_repeat = !plan.noise && !(plan_.graph.op(op).flags & kOpOpaque);
    reader_ = overflows_.reads(*plan.handle, written, can_repeat, machine_.arguments(op));
  } catch (const std::exception&) {  // an argument is missing: the run reports it
  }
}

void HiddenFollower::after(OpId op, const StepOutcome* above) {
  if (!overflows_.any() && !above) return;
  const OpPlan& plan = plan_.ops[op];
  try {
    OpResults made{machine_.outputs(op), {}};
    // A view of memory that the op was given was not made by it.
    for (std::size_t i = 0; i < made.returned.size(); ++i)
      if (std::find(plan.written.begin(), plan.written.end(), plan.outputs[i]) == plan.written.end())
        made.returned[i] = at::Tensor();
    for (const ArgPlan& arg : plan.args)
      if (arg.written)
        for (const TensorId row : arg.rows)
          if (row) made.written.push_back(machine_.slots().view(row));
    overflows_.after(std::move(reader_), made);
    if (above)
      overflows_.begins(op.row(), {machine_.outputs(op), machine_.written(op)},
                        {above->outputs, above->written});
  } catch (const std::exception&) {  // memory that the run could not fill
  }
}

void HiddenFollower::flag(SnapshotDoc& doc) const {
  const auto flag_all = [&](const HiddenOverflows::Ops& ops, OpFlag what) {
    for (const std::int32_t op : ops) get(doc, OpId{op}).flags |= what;
  };
  flag_all(overflows_.harmful(), kOpHidesDamage);
  flag_all(overflows_.harmless(), kOpHidesNothing);
}

}  // namespace nanquest::trace
