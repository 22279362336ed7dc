/// argument_tree: an op's arguments from their flat tokens, without the operator's schema.
#pragma once

#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// A value, or a list of them.
struct ArgumentTree {
  const ArgRow* row = nullptr;  ///< the doc's row; never null in results of argument_trees
  std::vector<ArgumentTree> elements;
};

/// One tree per argument; empty if the tokens are not complete arguments. The doc must outlive it.
std::vector<ArgumentTree> argument_trees(const SnapshotDoc& doc, const OpRow& op);

}  // namespace nanquest
