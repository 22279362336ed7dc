#include "probe/trace/hidden.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace nanquest {
namespace {

/// Formats with the exponents of fp32 or more.
bool headroom_is_wide(DType type) {
  return type == DType::float32 || type == DType::float64 || type == DType::bfloat16 ||
         dtype_is_complex(type);
}

/// exp that overflows a wide format is how sigmoids and softpluses saturate; their 1/inf is an intended zero.
bool saturates(const TraceGraph& graph, OpId op) {
  const std::string& name = graph.op(op).name;
  bool grows = false;
  for (const std::string_view exponential : {"aten::exp", "aten::expm1", "aten::cosh", "aten::sinh"})
    grows = grows || name == exponential || name == std::string(exponential) + "_";
  const auto written = graph.written(op);
  return grows && std::all_of(written.begin(), written.end(), [&](TensorId row) {
           return !row || headroom_is_wide(graph.tensor(row).dtype);
         });
}

}  // namespace

bool hides_overflow(const TraceGraph& graph, OpId op) {
  const std::uint32_t flags = graph.op(op).flags;
  if (!(flags & kOpBirthFiniteAbove) || (flags & kOpHidesNothing)) return false;
  if (flags & kOpHidesDamage) return true;
  // It could not be followed. A large negative number that becomes -inf before a softmax was meant to vanish
  // there.
  return graph.written_counts(op).pos_inf > 0 && !saturates(graph, op);
}

std::vector<std::int32_t> hidden_overflows(const SnapshotDoc& doc) {
  std::vector<std::int32_t> found;
  for (const OpId op : ids_of<OpRow>(doc))
    if (get(doc, op).flags & kOpHidesDamage) found.push_back(op.row());
  return found;
}

}  // namespace nanquest
