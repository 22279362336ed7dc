/// saturation: overflows that do no harm, recognised before they happen.
#pragma once

#include "probe/trace/graph.h"

namespace nanquest {

/// True if all results of `op` reach only ops whose result is right for an infinity (tanh, sigmoid, erf,
/// clamp), through sums, products and format conversions only, and nothing in the backward pass: the pow(x,
/// 3) inside the tanh of a GELU. False if not known. Needs no values.
bool only_saturates(const TraceGraph& graph, OpId op);

}  // namespace nanquest
