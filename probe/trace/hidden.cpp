#include "probe/trace/hidden.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace nanquest {
namespace {

/// Formats with the exponents of fp32 or more.
bool headroom_is_wide(DType type) {
  return type == DType::float32 || type == DType::float64 || type == DType::bfloat16 ||
         type == DType::complex64 || type == DType::complex128;
}

/// exp that overflows a wide format is how sigmoids and softpluses saturate; 1/inf is the zero that they
/// mean.
bool saturates(const TraceGraph& graph, std::int32_t index) {
  const std::string& name = graph.op(index).name;
  bool grows = false;
  for (const std::string_view exponential : {"aten::exp", "aten::expm1", "aten::cosh", "aten::sinh"})
    grows = grows || name == exponential || name == std::string(exponential) + "_";
  bool wide = true;
  graph.each_written(index,
                     [&](std::int32_t row) { wide = wide && headroom_is_wide(graph.tensor(row).dtype); });
  return grows && wide;
}

}  // namespace

bool hides_overflow(const TraceGraph& graph, std::int32_t index) {
  // A large negative number that becomes -inf on its way into a softmax was meant to vanish there.
  return (graph.op(index).flags & kOpBirthFiniteAbove) && graph.written_counts(index).pos_inf > 0 &&
         !saturates(graph, index);
}

std::vector<std::int32_t> hidden_overflows(const SnapshotDoc& doc) {
  std::vector<std::int32_t> found;
  const auto flagged = [](const OpRow& op) { return (op.flags & kOpBirthFiniteAbove) != 0; };
  if (std::none_of(doc.ops.begin(), doc.ops.end(), flagged)) return found;
  const TraceGraph graph(doc);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i)
    if (hides_overflow(graph, i)) found.push_back(i);
  return found;
}

}  // namespace nanquest
