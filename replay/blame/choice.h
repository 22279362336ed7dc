/// choice: ops by which a program selects some elements and discards others.
#pragma once

#include "probe/snapshot/model.h"

namespace nanquest {

/// True for an op that selects by the values themselves: a maximum, a clamp, relu. A saturating function
/// (tanh, sigmoid, softmax) selects nothing: its result is computed from all it is given.
bool chooses_by_value(const OpRow& op);

}  // namespace nanquest
