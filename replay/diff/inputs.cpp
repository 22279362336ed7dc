#include "replay/diff/inputs.h"

#include <algorithm>
#include <set>
#include <utility>

#include "replay/diff/constants.h"

namespace nanquest::diff {
namespace {

bool same_argument(const c10::IValue& a, const c10::IValue& b) {
  const auto left = tensors_in(a), right = tensors_in(b);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i].defined() != right[i].defined() || (left[i].defined() && apart(left[i], right[i]).any()))
      return false;
  return true;
}

/// As same_view, whatever the format: the two steps may compute in different ones.
bool lies_alike(const TensorRow& a, const TensorRow& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.storage_offset == b.storage_offset;
}

/// Both values come from ops that are each other's partner, or are the same bits.
bool within_rounding(const Steps& steps, const OpPair& pair, std::size_t position) {
  const auto left = rows_at(steps.graph_a, pair.a, position),
             right = rows_at(steps.graph_b, pair.b, position);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const OpId maker_a = steps.graph_a.producer(left[i], pair.a),
               maker_b = steps.graph_b.producer(right[i], pair.b);
    if (!maker_a || !maker_b || steps.alignment.of_a[maker_a] != maker_b) return false;
    if (!lies_alike(steps.graph_a.tensor(left[i]), steps.graph_b.tensor(right[i]))) return false;
  }
  return true;
}

}  // namespace

std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  return {};
}

std::vector<TensorId> rows_at(const TraceGraph& graph, OpId op, std::size_t position) {
  std::vector<TensorId> rows;
  for (const TraceGraph::Argument& argument : graph.arguments(op))
    if (static_cast<std::size_t>(argument.position) == position) rows.push_back(argument.row);
  return rows;
}

std::vector<std::size_t> differing_inputs(const Steps& steps, const OpPair& pair, const PairValues& values) {
  std::set<std::size_t> numbers;
  for (const Constant& c : constants_of(steps.a, pair.a))
    numbers.insert(static_cast<std::size_t>(c.position));
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < std::min(values.given_a.size(), values.given_b.size()); ++i)
    if (!numbers.contains(i) && !same_argument(values.given_a[i], values.given_b[i])) found.push_back(i);
  // Inputs that differ by rounding agree. What an aligned op made agrees, because this is the first beyond.
  std::erase_if(found, [&](std::size_t i) { return within_rounding(steps, pair, i); });
  return found;
}

std::vector<OpId> makers(const TraceGraph& graph, OpId op, const PerRow<OpRow, OpId>& partner,
                         const std::vector<std::size_t>& positions) {
  std::set<OpId> seen;
  std::vector<std::pair<TensorId, OpId>> open;
  for (const std::size_t i : positions)
    for (const TensorId row : rows_at(graph, op, i)) open.emplace_back(row, op);
  while (!open.empty()) {
    const auto [row, before] = open.back();
    open.pop_back();
    const OpId maker = graph.producer(row, before);
    if (!maker || partner[maker] || !seen.insert(maker).second) continue;
    for (const TensorId read : graph.reads(maker)) open.emplace_back(read, maker);
  }
  return {seen.begin(), seen.end()};
}

std::string source_words(const TraceGraph& graph, OpId op, std::size_t position) {
  std::string text;
  for (const TensorId row : rows_at(graph, op, position)) {
    if (!row || !graph.slot(row)) continue;
    const OpId maker = graph.producer(row, op);
    if (!text.empty()) text += ", ";
    const std::string& name = get(graph.doc(), graph.slot(row)).name;
    text += maker ? words_of(graph, maker) : name.empty() ? "a value from outside" : plain_path(name);
    const TensorRow& t = graph.tensor(row);
    text += " (sizes";
    for (const std::int64_t size : t.sizes) text += " " + std::to_string(size);
    text += ", strides";
    for (const std::int64_t stride : t.strides) text += " " + std::to_string(stride);
    text += ")";
  }
  return text;
}

}  // namespace nanquest::diff
