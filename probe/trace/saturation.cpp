#include "probe/trace/saturation.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "probe/base/one_of.h"
#include "probe/trace/op_numbers.h"

namespace nanquest {
namespace {

constexpr std::size_t kMostOps = 64;

bool bounds(std::string_view name) {
  return is_one_of(name, {"tanh", "sigmoid", "erf", "clamp", "clamp_max", "hardtanh", "hardsigmoid"});
}

/// Operators through which an infinity passes unchanged.
bool carries(std::string_view name) {
  return is_one_of(name, {"add", "sub", "mul", "neg", "_to_copy", "copy", "clone"});
}

}  // namespace

bool only_saturates(const TraceGraph& graph, OpId op) {
  std::set<OpId> known{op};
  std::vector<OpId> open{op};
  bool bounded = false;
  while (!open.empty()) {
    const OpId at = open.back();
    open.pop_back();
    const std::vector<OpId> readers = graph.consumers(at);
    if (readers.empty()) return false;  // code outside the step may read it
    for (const OpId reader : readers) {
      if (graph.op(reader).phase != Phase::forward) return false;
      const std::string_view name = plain_name(graph.op(reader).name);
      if (bounds(name))
        bounded = true;
      else if (!carries(name))
        return false;
      else if (known.insert(reader).second)
        open.push_back(reader);
    }
    if (known.size() > kMostOps) return false;
  }
  return bounded;
}

}  // namespace nanquest
