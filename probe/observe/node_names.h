/// Names of backward nodes, each stored once and never freed, so that records refer to them instead of
/// copying.
#pragma once

#include <string>

namespace nanquest {

struct NodeName {
  std::string name;   ///< "MmBackward0"
  std::string after;  ///< "accumulation after MmBackward0": for ops between it and the next node
};

/// The name's unique entry. Thread-safe; allocates only when a name is new.
const NodeName* node_name(const char* name);

}  // namespace nanquest
