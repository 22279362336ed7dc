/// hook_ops: what hooks of saved tensors (torch.autograd.graph.saved_tensors_hooks, save_on_cpu) compute
/// inside of the op that autograd saves for. They may read that op's result, so they are told after it. All
/// functions are of one thread.
#pragma once

#include <ATen/core/ivalue.h>

#include "probe/observe/observer.h"

namespace nanquest {

/// An op of a hook begins. Its arguments are kept until it is told.
void hook_op_began(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs);
/// The op that began last has ended; one that threw returned nothing.
void hook_op_ended(c10::ArrayRef<const c10::IValue> outputs);
/// The op around them has ended: tells `sink` of them in their order, and forgets them. Throws what the sink
/// does.
void tell_hook_ops(OpSink& sink);
void forget_hook_ops();

}  // namespace nanquest
