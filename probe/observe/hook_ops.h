/// hook_ops: ops that hooks of saved tensors (torch.autograd.graph.saved_tensors_hooks, save_on_cpu) run
/// inside the op for which autograd saves. They may read that op's result, so they are reported after it. All
/// functions use the state of the calling thread.
#pragma once

#include <ATen/core/ivalue.h>

#include "probe/observe/observer.h"

namespace nanquest {

/// An op of a hook begins. Its arguments are kept until it is reported.
void hook_op_began(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
/// The op that began last has ended; one that threw returned nothing.
void hook_op_ended(c10::ArrayRef<const c10::IValue> outputs);
/// The op around them has ended: reports them to `sink` in their order, and forgets them. Rethrows exceptions
/// of the sink.
void tell_hook_ops(OpSink& sink);
void forget_hook_ops();

}  // namespace nanquest
