#include "probe/observe/draws.h"

#include "probe/trace/op_facts.h"

namespace nanquest {

bool draws(const OpTraits& op, c10::ArrayRef<const c10::IValue> arguments) {
  if (!op.seeded) return false;
  const std::vector<c10::Argument>& declared = op.handle.schema().arguments();
  for (std::size_t i = 0; i < arguments.size() && i < declared.size(); ++i)
    if (draws_nothing_if_zero(declared[i].name()) && arguments[i].isDouble())
      return arguments[i].toDouble() != 0;
  return true;
}

}  // namespace nanquest
