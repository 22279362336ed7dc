#include "replay/diff/ends.h"

#include <algorithm>
#include <map>

#include "replay/diff/align.h"

namespace nanquest::diff {
namespace {

struct Left {
  std::map<std::string, Place> gradients, weights;
};

Left left_by(const TraceGraph& graph) {
  Left left;
  const SnapshotDoc& doc = graph.doc();
  for (std::size_t i = 0; i < doc.parameters.size(); ++i) {
    const std::string name = plain_path(doc.parameters[i].name);
    if (i < doc.gradients.size())
      if (const TensorId row{doc.gradients[i]}; row && graph.slot(row))
        if (const OpId maker = graph.producer(row, graph.end()))
          left.gradients.emplace(name, Place{maker, row});
    const SlotId slot{doc.parameters[i].slot};
    if (!find_row(doc, slot) || graph.writes(slot).empty()) continue;
    const TraceGraph::Write& write = graph.writes(slot).back();
    left.weights.emplace(name, Place{write.op, write.row});
  }
  return left;
}

void add(const char* group, const std::map<std::string, Place>& a, const std::map<std::string, Place>& b,
         std::vector<End>& ends, std::vector<OnlyEnd>& only) {
  for (const auto& [name, place] : a)
    if (const auto other = b.find(name); other != b.end())
      ends.push_back({group, name, place, other->second});
    else
      only.push_back({group, name, true});
  for (const auto& [name, place] : b)
    if (!a.contains(name)) only.push_back({group, name, false});
}

}  // namespace

std::string sentence(const OnlyEnd& end, std::string_view side) {
  return end.group + ": only " + std::string(side) + " has one of " + end.name;
}

std::vector<End> ends_of(const TraceGraph& a, const TraceGraph& b, std::vector<OnlyEnd>& only) {
  std::vector<End> ends;
  const TensorId loss_a{a.doc().loss}, loss_b{b.doc().loss};
  if (loss_a && loss_b && micro_batches(a.doc()) == micro_batches(b.doc()) && a.slot(loss_a) &&
      b.slot(loss_b)) {
    const OpId maker_a = a.producer(loss_a, a.end()), maker_b = b.producer(loss_b, b.end());
    if (maker_a && maker_b) ends.push_back({"loss", "loss", {maker_a, loss_a}, {maker_b, loss_b}});
  }
  const Left left = left_by(a), right = left_by(b);
  add("gradients", left.gradients, right.gradients, ends, only);
  add("updated weights", left.weights, right.weights, ends, only);
  return ends;
}

std::int32_t micro_batches(const SnapshotDoc& doc) {
  std::int32_t most = 0;
  for (const OpRow& op : doc.ops) most = std::max(most, op.micro_batch + 1);
  return most;
}

bool is_one_model(const TraceGraph& a, const TraceGraph& b, const std::vector<End>& ends) {
  const auto with_gradient = [](const SnapshotDoc& doc) {
    return static_cast<std::int64_t>(doc.gradients.size()) -
           std::count(doc.gradients.begin(), doc.gradients.end(), kNone);
  };
  const auto shared = std::count_if(ends.begin(), ends.end(), [&](const End& end) {
    return end.group == "gradients" && a.tensor(end.a.row).sizes == b.tensor(end.b.row).sizes;
  });
  return shared > 0 && 10 * shared >= 8 * std::max(with_gradient(a.doc()), with_gradient(b.doc()));
}

bool all_agree(const std::vector<Group>& groups) {
  return !groups.empty() &&
         std::all_of(groups.begin(), groups.end(), [](const Group& g) { return g.differ == 0; });
}

std::vector<Place> places(const std::vector<End>& ends, Place End::*side) {
  std::vector<Place> found;
  found.reserve(ends.size());
  for (const End& end : ends) found.push_back(end.*side);
  return found;
}

std::vector<Group> judge_ends(const std::vector<End>& ends, const std::vector<at::Tensor>& a,
                              const std::vector<at::Tensor>& b, const std::vector<Apart>& limits) {
  std::vector<Group> groups;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (!a[i].defined() || !b[i].defined()) continue;
    if (groups.empty() || groups.back().name != ends[i].group)
      groups.push_back({ends[i].group, 0, 0, "", {}});
    Group& group = groups.back();
    ++group.compared;
    const Apart found = apart(a[i], b[i]);
    if (!beyond(found, limits[i], a[i].scalar_type(), b[i].scalar_type())) continue;
    if (++group.differ == 1) group.first = ends[i].name, group.distance = {found.whole, limits[i].whole};
  }
  return groups;
}

}  // namespace nanquest::diff
