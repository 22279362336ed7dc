#include "probe/trace/collectives.h"

#include <initializer_list>

namespace nanquest {
namespace {

constexpr std::string_view kSpace = "c10d::";

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  if (op.substr(0, kSpace.size()) != kSpace) return false;
  for (const std::string_view name : names)
    if (op.substr(kSpace.size()) == name) return true;
  return false;
}

}  // namespace

bool awaits_collective(std::string_view op) {
  return op == "_c10d_functional::wait_tensor" || op == "_c10d_functional::wait_tensors";
}

bool is_collective(std::string_view op) {
  return (op.substr(0, kSpace.size()) == kSpace || op.substr(0, 17) == "_c10d_functional:") &&
         !awaits_collective(op);
}

bool collective_writes(std::string_view op) {
  return op.substr(0, kSpace.size()) == kSpace && !is_one_of(op, {"send", "barrier", "monitored_barrier_"});
}

bool collective_overwrites(std::string_view op) {
  return collective_writes(op) &&
         !is_one_of(op, {"allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_"});
}

}  // namespace nanquest
