/// inputs: which arguments of a pair of aligned ops differ, and which ops made them.
#pragma once

#include <string>
#include <vector>

#include "replay/diff/pair_values.h"

namespace nanquest::diff {

/// Tensors of an argument, lists included.
std::vector<at::Tensor> tensors_in(const c10::IValue& value);

/// Rows of the tensors at `position` of the op's arguments.
std::vector<TensorId> rows_at(const TraceGraph& graph, OpId op, std::size_t position);

/// Positions of the tensor arguments of the first pair beyond rounding that differ by more than rounding.
std::vector<std::size_t> differing_inputs(const Steps& steps, const OpPair& pair, const PairValues& values);

/// Ops without a partner from which the arguments of `op` at `positions` were computed, back to ops with one.
std::vector<OpId> makers(const TraceGraph& graph, OpId op, const PerRow<OpRow, OpId>& partner,
                         const std::vector<std::size_t>& positions);

/// Where the tensors of an argument come from: "aten::addmm in blocks.1 (op 34) (sizes 4 8, strides 8 1)".
std::string source_words(const TraceGraph& graph, OpId op, std::size_t position);

}  // namespace nanquest::diff
