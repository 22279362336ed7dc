/// OpGraph: the ops around one op: who made what it reads, who reads what it made, and once more beyond
/// those.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "viewer/model/trace.h"

namespace nanquest::viewer {

struct OpGraph {
  struct Node {
    OpId op;
    int level = 0;     ///< -1: a producer of the centre, -2: one of its producers; 1, 2: consumers
    std::string cast;  ///< "fp32 > fp16" for an op that only changes the format; "" for others
  };
  /// `to` reads what `from` wrote; both are positions in `nodes`.
  struct Edge {
    std::size_t from = 0, to = 0;
  };
  std::vector<Node> nodes;  ///< by level, and within a level in the order in which they ran
  std::vector<Edge> edges;
  /// Ops of a level, from -levels to levels, that are left out because there are too many.
  std::vector<std::size_t> left_out;

  std::size_t missing(int level) const {
    const auto middle = static_cast<std::ptrdiff_t>(left_out.size() / 2);
    return left_out[static_cast<std::size_t>(middle + level)];
  }
};

/// The graph around `centre`. An op stands on one level, the nearest to the centre. At most `most` ops a
/// level are kept: those that hold bad values or lie on the path first, then the first ones.
OpGraph op_graph(const TraceView& trace, OpId centre, int levels = 2, std::size_t most = 4);

/// "fp32 > fp16" for an op that only changes the format of what it reads; "" for others.
std::string cast_text(const TraceView& trace, OpId op);

}  // namespace nanquest::viewer
