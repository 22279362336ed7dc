/// Names of backward nodes, each kept once and for ever, so that what is recorded refers to them instead of
/// copying.
#pragma once

#include <string>

namespace nanquest {

struct NodeName {
  std::string name;   ///< "MmBackward0"
  std::string after;  ///< "accumulation after MmBackward0": what runs between it and the next node
};

/// The name's one place. Thread-safe; allocates when a name is seen for the first time only.
const NodeName* node_name(const char* name);

}  // namespace nanquest
