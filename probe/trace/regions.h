/// The op of a compiled region ("nanquest::compiled_region"): the contents of its row besides tensors, and
/// the place of the compiler's input graph in a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A call of a compiled region.
struct RegionCall {
  std::int64_t graph = -1;  ///< number of its graph in the process that recorded it; below 0: no graph
  std::size_t tensors =
      0;  ///< number of inputs that are tensors; they are the first tensor arguments of the row
  std::vector<std::int64_t> sizes;    ///< inputs that are no tensors, in order
  std::vector<std::int64_t> written;  ///< inputs that it writes, as places among those that are tensors; what
                                      ///< it wrote there comes after its results among the row's outputs
};

/// OpRow::node of an operator inside an opened region that is part of a derivative; nothing more is known of
/// it.
inline constexpr const char* kCompiledDerivative = "compiled derivative";

/// The contents of the row; a call without a graph if the file has none.
RegionCall region_call(const SnapshotDoc& doc, const OpRow& op);

/// Path of a graph in the file: its text as uint8.
std::string region_graph_path(std::int64_t graph);

}  // namespace nanquest
