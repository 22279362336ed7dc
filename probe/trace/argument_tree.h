/// argument_tree: an op's arguments out of their flat tokens, without the operator's schema.
#pragma once

#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A value, or a list of them.
struct ArgumentTree {
  const ArgRow* row = nullptr;  ///< never null in what argument_trees gives; the doc's
  std::vector<ArgumentTree> elements;
};

/// One an argument; empty if the tokens are no whole arguments. The doc outlives it.
std::vector<ArgumentTree> argument_trees(const SnapshotDoc& doc, const OpRow& op);

}  // namespace nanquest
