/// region_elsewhere: operators of a graph that was compiled for a device, on a CPU that lacks some of their
/// kernels. Used by region_graph only.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>

#include "replay/lab/region_values.h"

namespace nanquest::region {

/// Calls the operator on `stack`, which then holds its results. `told` is what the graph says of these, one
/// each: null, a number, or a tensor's "dtype" and "sizes" (null: known only when it runs). Fused attention
/// is computed by matrix products (replay/trace/attention.h), with its dropout drawn by `draw`. Operators
/// without a CPU kernel in these formats run in fp32, and the result is rounded. True if the operator's own
/// kernel ran. Throws what the operator throws.
bool call_elsewhere(const c10::OperatorHandle& op, const Json& told, std::int64_t draw,
                    std::vector<c10::IValue>& stack);

}  // namespace nanquest::region
