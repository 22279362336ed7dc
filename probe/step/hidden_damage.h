/// HiddenDamage: overflows that later ops hide, told once a place: a model that does it once does it in every
/// step.
#pragma once

#include <set>
#include <string>

#include "probe/snapshot/model.h"

namespace nanquest {

class HiddenDamage {
 public:
  /// What to say of a watched step that was good as far as loss and gradients tell; "" if nothing is new.
  std::string in(const SnapshotDoc& doc);

 private:
  std::set<std::string> told_;  ///< op, module and node
};

}  // namespace nanquest
