/// walk: from harm back to where it came from, through bad values only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "probe/snapshot/model.h"
#include "probe/trace/graph.h"

namespace nanquest {

/// Where bad values that did harm came from.
struct Root {
  std::int32_t op = kNone;   ///< the birth, or the first op that read a bad outside value
  std::int32_t row = kNone;  ///< the bad outside value (a tensor row), kNone for a birth
};

/// Walks back from the harm through bad values only; `next` leads from each op towards the harm.
struct Walk {
  std::vector<Root> roots;
  std::unordered_map<std::int32_t, std::int32_t> next;
};

/// Walks back from a bad loss, bad gradients and bad updates.
Walk walk_back(const SnapshotDoc& doc, const TraceGraph& graph);

/// True for infinities that somebody wrote down: a constant argument, or a mask of -inf handed in from
/// outside.
bool is_intended(const SnapshotDoc& doc, const TraceGraph& graph, const Root& root);

/// Ops from `from` to the harm, in order.
std::vector<std::int32_t> path_to_harm(const Walk& walk, std::int32_t from);

/// An infinity was meant: the op that turned it into harm, looking from its source towards the harm.
std::int32_t first_harmful(const TraceGraph& graph, const std::vector<std::int32_t>& path, bool source_is_op);

}  // namespace nanquest
