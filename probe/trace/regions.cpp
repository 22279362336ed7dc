#include "probe/trace/regions.h"

#include <algorithm>
#include <cstdio>

#include "probe/trace/ids.h"

namespace nanquest {

RegionCall region_call(const SnapshotDoc& doc, const OpRow& op) {
  // Its arguments are a list of tensors, a number, a list of numbers: tokens in order (model.h).
  RegionCall call;
  std::int64_t tensors_left = -1;
  const std::int64_t end = std::min<std::int64_t>(std::int64_t{op.first_arg} + op.arg_count,
                                                  static_cast<std::int64_t>(doc.args.size()));
  bool numbered = false;
  for (std::int64_t i = std::max(op.first_arg, 0); i < end; ++i) {
    const ArgRow& token = doc.args[static_cast<std::size_t>(i)];
    if (tensors_left < 0) {
      if (token.kind != ArgKind::list) return call;
      tensors_left = token.integer;
    } else if (tensors_left > 0) {
      --tensors_left;
    } else if (token.kind == ArgKind::integer) {
      if (numbered)
        call.sizes.push_back(token.integer);
      else
        call.graph = token.integer;
      numbered = true;
    }
  }
  return call;
}

std::string region_graph_path(std::int64_t graph) {
  char path[40];
  std::snprintf(path, sizeof path, "regions/%06lld", static_cast<long long>(graph));
  return path;
}

}  // namespace nanquest
