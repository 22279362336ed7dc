/// draws: whether a call of an operator draws random numbers.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

#include "probe/observe/op_traits.h"

namespace nanquest {

/// True if an operator draws random numbers for these arguments, in the schema's order. Attention operators
/// are tagged as drawing even if their dropout is off.
bool draws(const OpTraits& op, c10::ArrayRef<const c10::IValue> arguments);

}  // namespace nanquest
