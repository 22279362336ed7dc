/// saturation: overflows that do no harm, known before they happen.
#pragma once

#include "probe/trace/graph.h"

namespace nanquest {

/// True if whatever `op` writes reaches nothing but ops whose result an infinity leaves as it should be (tanh,
/// sigmoid, erf, clamp), by way of sums, products and other formats alone, and nothing in the backward pass: the
/// pow(x, 3) inside the tanh of a GELU. False where that can't be told. Needs no values.
bool only_saturates(const TraceGraph& graph, OpId op);

}  // namespace nanquest
