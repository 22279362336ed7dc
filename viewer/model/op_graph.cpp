#include "viewer/model/op_graph.h"

#include <algorithm>
#include <map>
#include <set>

namespace nanquest::viewer {
namespace {

/// The ops of the next level, out from those of the last one.
std::vector<OpId> beyond(const TraceView& trace, const std::vector<OpId>& last, bool forward,
                         std::set<OpId>& seen) {
  std::vector<OpId> out;
  for (const OpId op : last)
    for (const OpId next : forward ? trace.consumers(op) : trace.producers(op))
      if (seen.insert(next).second) out.push_back(next);
  return out;
}

/// Keeps the `most` that tell the most, in the order in which they ran; returns how many are left out.
std::size_t keep_some(const TraceView& trace, std::vector<OpId>& ops, std::size_t most) {
  const auto dull = [&](OpId op) { return trace.mark(op) == OpMark::none; };
  std::ranges::sort(ops);
  std::stable_sort(ops.begin(), ops.end(), [&](OpId a, OpId b) { return !dull(a) && dull(b); });
  const std::size_t left_out = ops.size() - std::min(ops.size(), most);
  ops.resize(ops.size() - left_out);
  std::ranges::sort(ops);
  return left_out;
}

}  // namespace

std::string cast_text(const TraceView& trace, OpId op) {
  const TraceLine line = trace.line(op);
  const bool copies = line.name.starts_with("aten::_to_copy") || line.name.starts_with("aten::to") ||
                      line.name.starts_with("aten::copy_");
  return copies && line.read_formats != line.write_format ? line.read_formats + " > " + line.write_format
                                                          : "";
}

OpGraph op_graph(const TraceView& trace, OpId centre, int levels, std::size_t most) {
  OpGraph graph;
  graph.left_out.assign(2 * static_cast<std::size_t>(levels) + 1, 0);
  std::map<int, std::vector<OpId>> rows = {{0, {centre}}};
  std::set<OpId> seen = {centre};
  for (int distance = 1; distance <= levels; ++distance)
    for (const int side : {-1, 1}) {
      std::vector<OpId> next = beyond(trace, rows[side * (distance - 1)], side > 0, seen);
      const std::ptrdiff_t place = std::ptrdiff_t{levels} + side * distance;
      graph.left_out[static_cast<std::size_t>(place)] = keep_some(trace, next, most);
      rows[side * distance] = std::move(next);
    }
  std::map<OpId, std::size_t> node_of;
  for (const auto& [level, ops] : rows)
    for (const OpId op : ops) {
      node_of[op] = graph.nodes.size();
      graph.nodes.push_back({op, level, cast_text(trace, op)});
    }
  for (std::size_t to = 0; to < graph.nodes.size(); ++to)
    for (const OpId producer : trace.producers(graph.nodes[to].op))
      if (const auto from = node_of.find(producer); from != node_of.end())
        graph.edges.push_back({from->second, to});
  return graph;
}

}  // namespace nanquest::viewer
