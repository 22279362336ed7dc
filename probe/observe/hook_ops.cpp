#include "probe/observe/hook_ops.h"

#include <memory>
#include <vector>

namespace nanquest {
namespace {

struct HookOp {
  const OpTraits* op;
  std::vector<c10::IValue> inputs, outputs;
};

std::vector<HookOp>& waiting() {
  thread_local std::vector<HookOp> ops;
  return ops;
}

}  // namespace

void hook_op_began(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  waiting().push_back({&op, std::vector<c10::IValue>(inputs.begin(), inputs.end()), {}});
}

void hook_op_ended(c10::ArrayRef<const c10::IValue> outputs) {
  if (waiting().empty()) return;
  waiting().back().outputs.assign(outputs.begin(), outputs.end());
}

void tell_hook_ops(OpSink& sink) {
  if (waiting().empty()) return;
  std::vector<HookOp> ops;
  ops.swap(waiting());
  const auto all = [](const std::vector<c10::IValue>& values) {
    return c10::ArrayRef<const c10::IValue>(values.data(), values.size());
  };
  for (const HookOp& each : ops) {
    if (const std::unique_ptr<OpFrame> frame = sink.on_start(*each.op, all(each.inputs)))
      sink.on_end(*each.op, *frame, all(each.outputs));
  }
}

void forget_hook_ops() {
  waiting().clear();
}

}  // namespace nanquest
