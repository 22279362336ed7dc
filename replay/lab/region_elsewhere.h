/// region_elsewhere: operators of a graph that was compiled for a device, on a CPU that lacks some of their
/// kernels. Internal to region_graph.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

#include "replay/lab/region_values.h"

namespace nanquest::region {

/// Calls the operator on `stack`, which then holds what it gives. `told` is what the graph says of that, one
/// each: null, a number, or a tensor's "dtype" and "sizes" (null: known only when it runs). Fused attention
/// is computed by matrix products (replay/trace/attention.h), a dropout of its own drawn by `draw`; what the
/// CPU has no kernel for in these formats runs in fp32, and is rounded. True if it was the operator's own
/// kernel that ran. Throws what the operator throws.
bool call_elsewhere(const c10::OperatorHandle& op, const Json& told, std::int64_t draw,
                    std::vector<c10::IValue>& stack);

}  // namespace nanquest::region
