/// choice: ops by which a program picks some elements and throws others away.
#pragma once

#include "probe/snapshot/model.h"

namespace nanquest {

/// True for an op that picks by the values themselves: a maximum, a clamp, relu. A function that saturates
/// (tanh, sigmoid, softmax) picks nothing: what it gives is made of what it was given.
bool chooses_by_value(const OpRow& op);

}  // namespace nanquest
