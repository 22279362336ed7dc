/// pair_values: what a pair of aligned ops is given and makes, in A with edits and in B with edits.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <vector>

#include "replay/diff/reason.h"

namespace nanquest::diff {

/// Copies of the arguments and of the results of both ops.
struct PairValues {
  std::vector<c10::IValue> given_a, given_b;
  std::vector<at::Tensor> made_a, made_b;
};

/// Runs both steps up to the pair.
PairValues values_at(const Steps& steps, const OpPair& pair, const Edits& in_a, const Edits& in_b);

}  // namespace nanquest::diff
