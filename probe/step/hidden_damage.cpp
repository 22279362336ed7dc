#include "probe/step/hidden_damage.h"

#include "probe/trace/hidden.h"

namespace nanquest {

std::string HiddenDamage::in(const SnapshotDoc& doc) {
  bool fresh = false;
  for (const std::int32_t index : hidden_overflows(doc)) {
    const OpRow& op = doc.ops[static_cast<std::size_t>(index)];
    const std::string module =
        op.module == kNone ? "" : doc.modules[static_cast<std::size_t>(op.module)].path;
    fresh = told_.insert(op.name + " " + module + " " + op.node).second || fresh;
  }
  return fresh ? "an overflow that reaches neither loss nor gradients" : "";
}

}  // namespace nanquest
