#include "probe/trace/collectives.h"

#include "probe/base/one_of.h"

namespace nanquest {
namespace {

constexpr std::string_view kSpace = "c10d::";

/// Name of an operator of c10d without its name space; empty for others.
std::string_view of_c10d(std::string_view op) {
  return op.starts_with(kSpace) ? op.substr(kSpace.size()) : std::string_view();
}

}  // namespace

bool awaits_collective(std::string_view op) {
  return op == "_c10d_functional::wait_tensor" || op == "_c10d_functional::wait_tensors";
}

bool is_collective(std::string_view op) {
  return (op.starts_with(kSpace) || op.substr(0, 17) == "_c10d_functional:") && !awaits_collective(op);
}

bool gathers(std::string_view op) {
  return is_collective(op) &&
         (op.find("allgather") != std::string_view::npos || op.find("all_gather") != std::string_view::npos);
}

bool collective_writes(std::string_view op) {
  return op.starts_with(kSpace) && !is_one_of(of_c10d(op), {"send", "barrier", "monitored_barrier_"});
}

bool collective_overwrites(std::string_view op) {
  return collective_writes(op) &&
         !is_one_of(of_c10d(op), {"allreduce_", "allreduce_coalesced_", "broadcast_", "reduce_"});
}

}  // namespace nanquest
