#include "replay/diff/align.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

namespace nanquest::diff {
namespace {

constexpr std::int64_t kWholeTable = 4000;  // ops; beyond that a band of as many

/// What identifies an op, as numbers that both steps share.
struct Key {
  int name = 0, overload = 0, module = 0, shape = 0;
  Phase phase = Phase::forward;
  bool view = false;
};

/// Numbers for texts.
class Numbers {
 public:
  int of(const std::string& text) {
    return numbers_.emplace(text, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, int> numbers_;
};

std::string shape_of(const TraceGraph& graph, OpId op) {
  std::string text;
  const auto add = [&](TensorId row) {
    if (!row) return;
    for (const std::int64_t size : graph.tensor(row).sizes) text += std::to_string(size) + ",";
    text += ";";
  };
  for (const TensorId row : graph.outputs(op)) add(row);
  for (const TensorId row : graph.written(op)) add(row);
  return text;
}

std::vector<Key> keys_of(const TraceGraph& graph, Numbers& numbers) {
  std::vector<Key> keys;
  for (const OpId id : graph.ops()) {
    const OpRow& op = graph.op(id);
    keys.push_back({numbers.of(op.name), numbers.of(op.overload), numbers.of(plain_path(graph.module_of(id))),
                    numbers.of(shape_of(graph, id)), op.phase, computes_nothing(op)});
  }
  return keys;
}

/// 0: never a pair. A view counts little, because it computes nothing; so does an op whose results have
/// another shape: their values can't be compared.
int score(const Key& a, const Key& b) {
  if (a.name != b.name || a.phase != b.phase) return 0;
  const bool module = a.module == b.module, shape = a.shape == b.shape;
  if (!module && !shape) return 0;
  const int points = 2 + 3 * module + 2 * shape + (a.overload == b.overload);
  return a.view || !shape ? points : 8 * points;
}

/// The best matching of two sequences, in order; what was matched is added to `pairs`.
class Sequences {
 public:
  Sequences(const std::vector<Key>& a, const std::vector<Key>& b, std::vector<OpPair>& pairs)
      : a_(a), b_(b), pairs_(pairs) {}

  void match(std::vector<std::int32_t> left, std::vector<std::int32_t> right) {
    while (!left.empty() && !right.empty() && equal(left.back(), right.back())) {
      pairs_.push_back({OpId{left.back()}, OpId{right.back()}});
      left.pop_back(), right.pop_back();
    }
    std::size_t same = 0;
    while (same < std::min(left.size(), right.size()) && equal(left[same], right[same])) {
      pairs_.push_back({OpId{left[same]}, OpId{right[same]}});
      ++same;
    }
    left.erase(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(same));
    right.erase(right.begin(), right.begin() + static_cast<std::ptrdiff_t>(same));
    if (!left.empty() && !right.empty()) table(left, right);
  }

 private:
  enum Step : std::uint8_t { none, pair, skip_a, skip_b };

  bool equal(std::int32_t a, std::int32_t b) const {
    const Key &l = a_[a], &r = b_[b];
    return l.name == r.name && l.overload == r.overload && l.module == r.module && l.shape == r.shape &&
           l.phase == r.phase;
  }

  void table(const std::vector<std::int32_t>& left, const std::vector<std::int32_t>& right) {
    const auto n = static_cast<std::int64_t>(left.size()), m = static_cast<std::int64_t>(right.size());
    // Column j of row i is kept at j - start(i); the band covers the whole table if that is small.
    const std::int64_t width = std::min(m + 1, std::max(kWholeTable, std::abs(n - m) + kWholeTable / 2));
    const auto start = [&](std::int64_t i) {
      return std::clamp<std::int64_t>(i * m / n - width / 2, 0, m + 1 - width);
    };
    std::vector<std::int64_t> above(width, 0), row(width, 0);
    std::vector<Step> steps(static_cast<std::size_t>((n + 1) * width), none);
    for (std::int64_t i = 0; i <= n; ++i) {
      const std::int64_t first = start(i), before = i ? start(i - 1) : 0;
      for (std::int64_t k = 0; k < width; ++k) {
        const std::int64_t j = first + k, up = j - before;
        std::int64_t best = 0;
        Step step = none;
        if (i && up >= 0 && up < width) best = above[up], step = skip_a;
        if (j && k && (step == none || row[k - 1] > best)) best = row[k - 1], step = skip_b;
        if (i && j && up >= 1 && up <= width)
          if (const int points = score(a_[left[i - 1]], b_[right[j - 1]]);
              points > 0 && above[up - 1] + points >= best)
            best = above[up - 1] + points, step = pair;
        row[k] = best;
        steps[static_cast<std::size_t>(i * width + k)] = step;
      }
      std::swap(above, row);
    }
    for (std::int64_t i = n, j = m; i > 0 || j > 0;) {
      const std::int64_t k = j - start(i);
      const Step step = k >= 0 && k < width ? steps[static_cast<std::size_t>(i * width + k)] : none;
      if (step == pair)
        pairs_.push_back({OpId{left[--i]}, OpId{right[--j]}});
      else if (step == skip_a || (step == none && i > 0))
        --i;
      else
        --j;
    }
  }

  const std::vector<Key>&a_, &b_;
  std::vector<OpPair>& pairs_;
};

/// Ops of the optimizer by the parameter that they update; all others under "".
std::map<std::string, std::vector<std::int32_t>> groups_of(const TraceGraph& graph) {
  std::map<std::string, std::vector<std::int32_t>> groups;
  const auto updates = parameters_of_updates(graph);
  for (const OpId op : graph.ops()) groups[updates[op.index()]].push_back(op.row());
  return groups;
}

}  // namespace

double Alignment::share() const {
  const std::size_t most = pairs.size() + std::max(only_a.size(), only_b.size());
  return most == 0 ? 1 : static_cast<double>(pairs.size()) / static_cast<double>(most);
}

std::string plain_path(std::string_view path) {
  std::string text(path);
  for (const std::string_view wrapper :
       {"_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module."})
    for (std::size_t at; (at = text.find(wrapper)) != std::string::npos;) text.erase(at, wrapper.size());
  while (text.starts_with("module.")) text.erase(0, 7);
  return text == "_orig_mod" || text == "module" ? "" : text;
}

std::vector<std::string> parameters_of_updates(const TraceGraph& graph) {
  const SnapshotDoc& doc = graph.doc();
  PerRow<Slot, std::string> name(doc.slots.size());
  for (const NamedTensor& parameter : doc.parameters)
    if (name.holds(SlotId{parameter.slot})) name[SlotId{parameter.slot}] = plain_path(parameter.name);
  for (std::size_t i = 0; i < std::min(doc.gradients.size(), doc.parameters.size()); ++i)
    if (doc.gradients[i] != kNone)
      if (const SlotId slot = graph.slot(TensorId{doc.gradients[i]}))
        name[slot] = plain_path(doc.parameters[i].name);
  std::vector<std::string> found(doc.ops.size());
  for (const OpId op : graph.ops()) {
    if (graph.op(op).phase != Phase::optimizer) continue;
    std::string& mine = found[op.index()];
    for (const TraceGraph::Argument& argument : graph.arguments(op))
      if (const SlotId slot = graph.slot(argument.row); slot && mine.empty()) mine = name[slot];
    for (const TensorId row : graph.written(op))
      if (const SlotId slot = graph.slot(row); slot && name[slot].empty()) name[slot] = mine;
  }
  return found;
}

Alignment align(const TraceGraph& a, const TraceGraph& b) {
  Alignment result;
  result.of_a = PerRow<OpRow, OpId>(a.ops().size());
  result.of_b = PerRow<OpRow, OpId>(b.ops().size());
  Numbers numbers;
  const std::vector<Key> left = keys_of(a, numbers), right = keys_of(b, numbers);
  const auto groups_a = groups_of(a), groups_b = groups_of(b);
  Sequences sequences(left, right, result.pairs);
  for (const auto& [name, ops] : groups_a)
    if (const auto other = groups_b.find(name); other != groups_b.end()) sequences.match(ops, other->second);
  std::sort(result.pairs.begin(), result.pairs.end(),
            [](const OpPair& l, const OpPair& r) { return l.b < r.b; });
  for (const OpPair& pair : result.pairs) result.of_a[pair.a] = pair.b, result.of_b[pair.b] = pair.a;
  for (const OpId op : a.ops())
    if (!result.of_a[op]) result.only_a.push_back(op);
  for (const OpId op : b.ops())
    if (!result.of_b[op]) result.only_b.push_back(op);
  return result;
}

}  // namespace nanquest::diff
