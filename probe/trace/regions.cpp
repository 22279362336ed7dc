#include "probe/trace/regions.h"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "probe/trace/ids.h"

namespace nanquest {

RegionCall region_call(const SnapshotDoc& doc, const OpRow& op) {
  // Its arguments are a list of tensors, a number and a list of numbers; files that record its writes have
  // another list of numbers and a list of tensors: tokens in order (model.h).
  RegionCall call;
  std::vector<std::int64_t>* const numbers[] = {nullptr, &call.sizes, &call.written, nullptr};
  std::size_t list = 0;
  std::int64_t left = 0;
  const std::int64_t end = std::min<std::int64_t>(std::int64_t{op.first_arg} + op.arg_count,
                                                  static_cast<std::int64_t>(doc.args.size()));
  for (std::int64_t i = std::max(op.first_arg, 0); i < end && list <= std::size(numbers); ++i) {
    const ArgRow& token = doc.args[static_cast<std::size_t>(i)];
    if (left > 0) {
      --left;
      if (auto* to = numbers[list - 1]; to && token.kind == ArgKind::integer) to->push_back(token.integer);
    } else if (token.kind == ArgKind::list) {
      left = token.integer;
      if (list++ == 0) call.tensors = static_cast<std::size_t>(std::max<std::int64_t>(left, 0));
    } else if (token.kind == ArgKind::integer) {
      call.graph = token.integer;
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
