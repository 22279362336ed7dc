#include "replay/diff/outside.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "probe/trace/origins.h"

namespace nanquest::diff {
namespace {

at::Tensor stored(const Replayer& replayer, const std::string& path) {
  const auto found = replayer.tensor(path);
  return found ? *found : at::Tensor();
}

/// What a row shows of a storage; undefined if it can't be shown.
at::Tensor shown(const at::Tensor& storage, const TensorRow& row) {
  if (!storage.defined()) return {};
  try {
    return storage.contiguous().flatten().as_strided(row.sizes, row.strides, row.storage_offset);
  } catch (const std::exception&) {
    return {};
  }
}

/// An outside storage, and the first use of it.
struct Use {
  SlotId slot;
  OpId op;
  TensorId row;
  std::size_t argument = 0;  ///< among the op's tensor arguments
};

/// Outside storages that are no numbers of expressions, in the order of their first use.
std::vector<Use> uses_of(const TraceGraph& graph) {
  std::vector<Use> uses;
  std::set<SlotId> seen;
  for (const OpId op : graph.ops()) {
    const auto arguments = graph.arguments(op);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const SlotId slot = graph.slot(arguments[i].row);
      if (!slot || get(graph.doc(), slot).data.empty()) continue;
      if ((graph.tensor(arguments[i].row).flags & kTensorWrappedNumber) != 0) continue;
      if (seen.insert(slot).second) uses.push_back({slot, op, arguments[i].row, i});
    }
  }
  return uses;
}

class Matching {
 public:
  Matching(const Replayer& a, const TraceGraph& graph_a, const Replayer& b, const TraceGraph& graph_b,
           const Alignment& alignment)
      : a_(a), b_(b), graph_a_(graph_a), graph_b_(graph_b), alignment_(alignment) {}

  Outside result() && {
    slots();
    using Group = std::vector<NamedTensor> SnapshotDoc::*;
    for (const Group group : {&SnapshotDoc::parameters, &SnapshotDoc::buffers, &SnapshotDoc::optimizer})
      named(a_.doc().*group, b_.doc().*group);
    std::stable_partition(result_.differ.begin(), result_.differ.end(),
                          [](const OutsideDifference& d) { return d.batch; });
    return std::move(result_);
  }

 private:
  void compare(OutsideDifference what, const at::Tensor& a, const at::Tensor& b) {
    if (!a.defined() || !b.defined()) return;
    what.apart = apart(a, b);
    if (!what.apart.any()) return;
    what.a = a.scalar_type(), what.b = b.scalar_type();
    what.in_a.value = a, what.in_b.value = b;
    if (a.sizes() != b.sizes()) what.in_a.slot = what.in_b.slot = {};
    result_.differ.push_back(std::move(what));
  }

  /// Both whole storages if they are laid out alike, otherwise what their first readers see of them.
  void compare_used(OutsideDifference what, const Use& a, const Use& b) {
    const TensorRow &left = graph_a_.tensor(a.row), &right = graph_b_.tensor(b.row);
    const at::Tensor value_a = stored(a_, get(graph_a_.doc(), a.slot).data),
                     value_b = stored(b_, get(graph_b_.doc(), b.slot).data);
    if (!value_a.defined() || !value_b.defined()) return;
    const bool alike =
        left.sizes == right.sizes && left.strides == right.strides && value_a.numel() == value_b.numel();
    what.in_a.row = left, what.in_b.row = right;
    for (TensorRow* row : {&what.in_a.row, &what.in_b.row})
      if (alike) row->sizes = {value_a.numel()}, row->strides = {1}, row->storage_offset = 0;
    what.in_a.slot = a.slot, what.in_b.slot = b.slot;
    if (alike)
      compare(std::move(what), value_a.flatten(), value_b.flatten());
    else
      compare(std::move(what), shown(value_a, left), shown(value_b, right));
  }

  /// Values that the steps use.
  void slots() {
    std::map<std::string, Use> by_name;
    for (const Use& use : uses_of(graph_b_))
      if (const std::string& name = get(graph_b_.doc(), use.slot).name; !name.empty())
        by_name.emplace(plain_path(name), use);
    for (const Use& use : uses_of(graph_a_)) {
      const Slot& slot = get(graph_a_.doc(), use.slot);
      Use other;
      if (!slot.name.empty()) {
        const auto found = by_name.find(plain_path(slot.name));
        if (found != by_name.end()) other = found->second;
      }
      if (const OpId partner = alignment_.of_a[use.op]; !other.slot && partner) {
        const auto arguments = graph_b_.arguments(partner);
        if (use.argument < arguments.size())
          other = {graph_b_.slot(arguments[use.argument].row), partner, arguments[use.argument].row,
                   use.argument};
      }
      if (!other.slot || get(graph_b_.doc(), other.slot).data.empty()) continue;
      const SlotOrigin origin = origin_of(graph_a_, use.slot);
      std::string name = plain_path(slot.name);
      if (name.empty())
        name = "tensor first read by " + graph_a_.op(use.op).name + " in " +
               std::string(graph_a_.module_of(use.op));
      OutsideDifference what;
      what.name = name;
      what.batch = comes_with_batch(origin);
      compare_used(std::move(what), use, other);
      seen_.insert(plain_path(slot.name));
    }
  }

  /// Those that they only hold; and names that one has.
  void named(const std::vector<NamedTensor>& a, const std::vector<NamedTensor>& b) {
    std::map<std::string, const NamedTensor*> by_name;
    for (const NamedTensor& value : b) by_name.emplace(plain_path(value.name), &value);
    for (const NamedTensor& value : a) {
      const std::string name = plain_path(value.name);
      const auto other = by_name.find(name);
      if (other == by_name.end()) {
        result_.only_a.push_back(name);
        continue;
      }
      OutsideDifference what;
      what.name = name;
      if (!seen_.contains(name))
        compare(std::move(what), stored(a_, value.data), stored(b_, other->second->data));
      by_name.erase(other);
    }
    for (const auto& [name, value] : by_name) result_.only_b.push_back(name);
  }

  const Replayer &a_, &b_;
  const TraceGraph &graph_a_, &graph_b_;
  const Alignment& alignment_;
  std::set<std::string> seen_;
  Outside result_;
};

}  // namespace

Outside compare_outside(const Replayer& a, const TraceGraph& graph_a, const Replayer& b,
                        const TraceGraph& graph_b, const Alignment& alignment) {
  return Matching(a, graph_a, b, graph_b, alignment).result();
}

}  // namespace nanquest::diff
