/// The op that stands for a compiled region ("nanquest::compiled_region"): what its row says besides tensors,
/// and where a file has the graph that the compiler was given.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A call of a compiled region.
struct RegionCall {
  std::int64_t graph = -1;  ///< number of its graph in the process that recorded it; below 0: none was seen
  std::size_t tensors = 0;  ///< inputs that are tensors; the row's first so many tensor arguments
  std::vector<std::int64_t> sizes;    ///< inputs that are no tensors, in order
  std::vector<std::int64_t> written;  ///< inputs that it writes, as places among those that are tensors; what
                                      ///< it wrote there comes after its results among the row's outputs
};

/// OpRow::node of an operator inside an opened region that is part of the derivative of another, of which
/// nothing more is known.
inline constexpr const char* kCompiledDerivative = "compiled derivative";

/// What the row says; a call without a graph for rows of files that know none.
RegionCall region_call(const SnapshotDoc& doc, const OpRow& op);

/// Path in the file of a graph: its text as uint8.
std::string region_graph_path(std::int64_t graph);

}  // namespace nanquest
