#include "probe/trace/collective_call.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <utility>

#include "probe/trace/argument_tree.h"
#include "probe/trace/collectives.h"

namespace nanquest {
namespace {

/// Argument positions in the operator's schema; -1: none. Outputs are what it writes or returns, in order.
struct Shape {
  std::string_view name;
  Pattern pattern;
  int inputs, group, reduction = -1, size = -1, root = -1;
};

constexpr std::array kShapes = {
    Shape{"c10d::allreduce_", Pattern::reduce, 0, 1, 2},
    Shape{"c10d::allreduce_coalesced_", Pattern::reduce, 0, 1, 2},
    Shape{"c10d::broadcast_", Pattern::broadcast, 0, 1, -1, -1, 2},
    Shape{"c10d::allgather_", Pattern::gather, 1, 2},
    Shape{"c10d::_allgather_base_", Pattern::gather, 1, 2},
    Shape{"c10d::allgather_into_tensor_coalesced_", Pattern::gather, 1, 2},
    Shape{"c10d::reduce_scatter_", Pattern::reduce_scatter, 1, 2, 3},
    Shape{"c10d::_reduce_scatter_base_", Pattern::reduce_scatter, 1, 2, 3},
    Shape{"c10d::reduce_scatter_tensor_coalesced_", Pattern::reduce_scatter, 1, 2, 3},
    Shape{"_c10d_functional::all_reduce", Pattern::reduce, 0, 2, 1},
    Shape{"_c10d_functional::all_reduce_", Pattern::reduce, 0, 2, 1},
    Shape{"_c10d_functional::all_reduce_coalesced", Pattern::reduce, 0, 2, 1},
    Shape{"_c10d_functional::all_reduce_coalesced_", Pattern::reduce, 0, 2, 1},
    Shape{"_c10d_functional::all_gather_into_tensor", Pattern::gather, 0, 2, -1, 1},
    Shape{"_c10d_functional::all_gather_into_tensor_out", Pattern::gather, 0, 2, -1, 1},
    Shape{"_c10d_functional::all_gather_into_tensor_coalesced", Pattern::gather, 0, 2, -1, 1},
    Shape{"_c10d_functional::reduce_scatter_tensor", Pattern::reduce_scatter, 0, 3, 1, 2},
    Shape{"_c10d_functional::reduce_scatter_tensor_out", Pattern::reduce_scatter, 0, 3, 1, 2},
    Shape{"_c10d_functional::reduce_scatter_tensor_coalesced", Pattern::reduce_scatter, 0, 3, 1, 2},
    Shape{"_c10d_functional::broadcast", Pattern::broadcast, 0, 2, -1, -1, 1},
    Shape{"_c10d_functional::broadcast_", Pattern::broadcast, 0, 2, -1, -1, 1},
};

constexpr std::array<std::pair<std::string_view, Reduction>, 9> kReductions = {
    {{"sum", Reduction::sum},
     {"avg", Reduction::average},
     {"product", Reduction::product},
     {"min", Reduction::min},
     {"max", Reduction::max},
     {"band", Reduction::band},
     {"bor", Reduction::bor},
     {"bxor", Reduction::bxor},
     {"", Reduction::none}}};

const Shape* shape_of(std::string_view op) {
  const auto found =
      std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& s) { return s.name == op; });
  return found == kShapes.end() ? nullptr : &*found;
}

/// Items of an argument: a tensor is one item, a list has one per tensor, a list of lists one per list.
std::vector<FlatRows> items_of(const ArgumentTree& node) {
  if (node.row->kind == ArgKind::tensor) return {{TensorId{node.row->tensor}}};
  std::vector<FlatRows> items;
  for (const ArgumentTree& element : node.elements) {
    FlatRows rows;
    if (element.row->kind == ArgKind::tensor) rows.push_back(TensorId{element.row->tensor});
    for (const ArgumentTree& inner : element.elements)
      if (inner.row->kind == ArgKind::tensor) rows.push_back(TensorId{inner.row->tensor});
    items.push_back(std::move(rows));
  }
  return items;
}

/// The text of a group or reduction argument: a functional's string, or the description of an object.
std::string said(const ArgumentTree& node, std::string_view prefix) {
  const std::string& text = node.row->text;
  if (node.row->kind == ArgKind::string) return text;
  return node.row->kind == ArgKind::opaque && text.starts_with(prefix) ? text.substr(prefix.size()) : "";
}

Reduction reduction_of(const std::string& word) {
  for (const auto& [name, reduction] : kReductions)
    if (!name.empty() && name == word) return reduction;
  return Reduction::unknown;
}

std::vector<std::int32_t> ranks_of(const SnapshotDoc& doc, const std::string& group) {
  std::vector<std::int32_t> ranks;
  const auto found = doc.environment.find(std::string(kProcessGroupKey) + group);
  if (group.empty() || found == doc.environment.end()) return ranks;
  const char* at = found->second.data();
  const char* const end = at + found->second.size();
  while (at < end) {
    std::int32_t rank = -1;
    const auto read = std::from_chars(at, end, rank);
    if (read.ec != std::errc() || rank < 0 || rank >= doc.world_size) return {};
    ranks.push_back(rank);
    at = read.ptr + (read.ptr < end);
  }
  return ranks;
}

bool all_sound(const SnapshotDoc& doc, const std::vector<FlatRows>& items) {
  for (const FlatRows& rows : items) {
    if (rows.empty()) return false;
    for (const TensorId row : rows)
      if (!find_row(doc, row)) return false;
  }
  return !items.empty();
}

}  // namespace

std::optional<CollectiveCall> collective_call(const SnapshotDoc& doc, OpId id) {
  const OpRow* op = find_row(doc, id);
  const Shape* shape = op ? shape_of(op->name) : nullptr;
  if (!shape) return std::nullopt;
  const std::vector<ArgumentTree> arguments = argument_trees(doc, *op);
  const auto argument = [&](int position) -> const ArgumentTree* {
    return position >= 0 && static_cast<std::size_t>(position) < arguments.size()
               ? &arguments[static_cast<std::size_t>(position)]
               : nullptr;
  };
  const ArgumentTree *inputs = argument(shape->inputs), *group = argument(shape->group);
  if (!inputs || !group) return std::nullopt;
  CollectiveCall call;
  call.pattern = shape->pattern;
  call.inputs = items_of(*inputs);
  call.group = said(*group, kProcessGroupText);
  call.ranks = ranks_of(doc, call.group);
  if (const ArgumentTree* reduction = argument(shape->reduction))
    call.reduction = reduction_of(said(*reduction, kReduceOpText));
  if (const ArgumentTree* size = argument(shape->size)) call.size = size->row->integer;
  if (const ArgumentTree* root = argument(shape->root)) call.root = root->row->integer;
  const auto first = op->first_written, count = op->written_count;
  if (first < 0 || count < 0 || first + std::int64_t{count} > static_cast<std::int64_t>(doc.written.size()) ||
      call.inputs.empty() || count % static_cast<std::int32_t>(call.inputs.size()) != 0)
    return std::nullopt;
  const auto each = count / static_cast<std::int32_t>(call.inputs.size());
  for (std::int32_t entry = 0; entry < count; ++entry) {
    if (entry % each == 0) call.outputs.emplace_back();
    call.outputs.back().push_back(
        TensorId{doc.written[static_cast<std::size_t>(first) + static_cast<std::size_t>(entry)]});
    call.written.push_back(entry);
  }
  if (!all_sound(doc, call.inputs) || !all_sound(doc, call.outputs)) return std::nullopt;
  return call;
}

std::string_view name_of(Reduction reduction) {
  if (reduction == Reduction::average) return "average";
  for (const auto& [name, value] : kReductions)
    if (value == reduction && !name.empty()) return name;
  return reduction == Reduction::none ? "" : "unknown";
}

std::vector<std::string> process_groups_in(const SnapshotDoc& doc) {
  std::set<std::string> names;
  for (const OpRow& op : doc.ops) {
    const Shape* shape = is_collective(op.name) ? shape_of(op.name) : nullptr;
    if (!shape) continue;
    const std::vector<ArgumentTree> arguments = argument_trees(doc, op);
    if (static_cast<std::size_t>(shape->group) >= arguments.size()) continue;
    if (std::string name = said(arguments[static_cast<std::size_t>(shape->group)], kProcessGroupText);
        !name.empty())
      names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

}  // namespace nanquest
