/// ends: what a step leaves behind: its loss, the gradient of each parameter, the updated weights. They
/// belong together by name, however the two steps compute them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/diff/report.h"
#include "replay/diff/rounding.h"

namespace nanquest::diff {

/// One value that both steps leave.
struct End {
  std::string group, name;
  Place a, b;
};

/// A parameter of which only one of two steps leaves a gradient, or an updated weight.
struct OnlyEnd {
  std::string group, name;
  bool of_a = true;
};
/// "gradients: only A has one of head.bias", if that is `side`'s.
std::string sentence(const OnlyEnd& end, std::string_view side);

/// Ends that both have, in order: loss (if both run as many micro-batches), gradients, updated weights.
/// `only` gets those that one step has.
std::vector<End> ends_of(const TraceGraph& a, const TraceGraph& b, std::vector<OnlyEnd>& only);

/// True if both steps leave gradients of nearly the same parameters: steps of one model, whatever ops they
/// run.
bool is_one_model(const TraceGraph& a, const TraceGraph& b, const std::vector<End>& ends);
/// Micro-batches of a step.
std::int32_t micro_batches(const SnapshotDoc& doc);

/// Places of A's (`side`: &End::a) or of B's values (&End::b), in the order of `ends`.
std::vector<Place> places(const std::vector<End>& ends, Place End::*side);

/// True if there are such groups and nothing in them differs.
bool all_agree(const std::vector<Group>& groups);

/// How many of each group are beyond rounding.
std::vector<Group> judge_ends(const std::vector<End>& ends, const std::vector<at::Tensor>& a,
                              const std::vector<at::Tensor>& b, const std::vector<Apart>& limits);

}  // namespace nanquest::diff
