#include "replay/diff/reason.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <set>

#include "replay/diff/formats.h"
#include "replay/diff/optimizer_settings.h"
#include "replay/diff/passed_numbers.h"

namespace nanquest::diff {
namespace {

/// Arguments and results of the pair, in A (with edits) and in B.
struct Both {
  std::vector<c10::IValue> given_a, given_b;
  std::vector<at::Tensor> made_a, made_b;
};

/// Tensors of an argument, lists included.
std::vector<at::Tensor> tensors_in(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  return {};
}

bool same_argument(const c10::IValue& a, const c10::IValue& b) {
  const auto left = tensors_in(a), right = tensors_in(b);
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i].defined() != right[i].defined() || (left[i].defined() && apart(left[i], right[i]).any()))
      return false;
  return true;
}

class Search {
 public:
  Search(const Steps& steps, const FirstBeyond& first, Edits& edits, const Edits& edits_of_b)
      : steps_(steps),
        first_(first),
        edits_(edits),
        edits_of_b_(edits_of_b),
        a_(first.pair.a),
        b_(first.pair.b) {}

  Finding find() {
    both_ = run(edits_);
    describe();
    const std::vector<NumberGroup> groups = number_groups(steps_);
    for (const bool here : {true, false})
      for (const NumberGroup& group : groups)
        if (is_here(group) == here && try_numbers(group)) return finding_;
    if (inputs_differ_.empty() && try_random()) return finding_;
    const Edits before = edits_;
    if (inputs_differ_.empty() || !try_inputs()) {
      edits_.written(a_, both_.made_b);
      const at::ScalarType type_a = type_of(both_.made_a), type_b = type_of(both_.made_b);
      if (inputs_differ_.empty() && type_a != type_b) {
        finding_.kind = Kind::format;
        finding_.in_a = at::toString(type_a), finding_.in_b = at::toString(type_b);
      }
    }
    if (steps_.precision == Precision::as_recorded) widen(before);
    return finding_;
  }

 private:
  /// Whether the number formats, or the order of sums, make the difference that remained with `before`.
  void widen(const Edits& before) {
    const auto widened =
        try_formats(steps_, first_, before, edits_of_b_, makers(steps_.graph_a, a_, steps_.alignment.of_a),
                    makers(steps_.graph_b, b_, steps_.alignment.of_b));
    if (!widened) return;
    finding_.widened = widened->side, finding_.in_format = widened->format;
    if (widened->side == "both") return;
    finding_.kind = Kind::format;
    finding_.in_a = widened->narrow_a, finding_.in_b = widened->narrow_b;
    finding_.shown = true;
  }

  at::ScalarType type_of(const std::vector<at::Tensor>& made) const {
    const auto i = static_cast<std::size_t>(first_.entry);
    return i < made.size() && made[i].defined() ? made[i].scalar_type() : at::kByte;
  }

  /// What A with these edits and B have at the pair.
  Both run(const Edits& edits) const {
    Both both;
    RunOptions left = edits.options(), right = edits_of_b_.options();
    left.stop_after = a_.row(), right.stop_after = b_.row();
    const auto keep = [](std::function<bool(std::vector<c10::IValue>&)> before,
                         std::vector<c10::IValue>& into) {
      return [before = std::move(before), &into](std::vector<c10::IValue>& stack) {
        const bool done = before && before(stack);
        into.clear();
        for (const c10::IValue& value : stack) into.push_back(copied(value));
        return done;
      };
    };
    left.edit.op_edit[a_.row()] = keep(left.edit.op_edit[a_.row()], both.given_a);
    right.edit.op_edit[b_.row()] = keep(right.edit.op_edit[b_.row()], both.given_b);
    const auto made = [&](const OpPair&, const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
      for (const at::Tensor& t : a) both.made_a.push_back(t.defined() ? t.detach().clone() : t);
      for (const at::Tensor& t : b) both.made_b.push_back(t.defined() ? t.detach().clone() : t);
    };
    (void)lockstep({&steps_.a, &left}, {&steps_.b, &right}, {first_.pair}, made);
    return both;
  }

  bool agrees(const Edits& edits) const {
    const Both now = run(edits);
    const auto i = static_cast<std::size_t>(first_.entry);
    return i < now.made_a.size() && i < now.made_b.size() &&
           !beyond(apart(now.made_a[i], now.made_b[i]), first_.limit, now.made_a[i].scalar_type(),
                   now.made_b[i].scalar_type());
  }

  /// The finding is at this op of A.
  void place(OpId at) {
    const Finding there = at_op(steps_, at);
    finding_.op = there.op, finding_.module = there.module, finding_.phase = there.phase;
    finding_.parameter = there.parameter;
    finding_.a = there.a, finding_.b = there.b;
  }

  void describe() {
    place(a_);
    finding_.places = 1;
    finding_.distance = {first_.found.whole, first_.limit.whole};
    std::set<std::size_t> numbers;
    for (const Constant& c : constants_of(steps_.a, a_)) numbers.insert(static_cast<std::size_t>(c.position));
    for (std::size_t i = 0; i < std::min(both_.given_a.size(), both_.given_b.size()); ++i)
      if (!numbers.contains(i) && !same_argument(both_.given_a[i], both_.given_b[i]))
        inputs_differ_.push_back(i);
    // Inputs that differ by rounding agree. What an aligned op made agrees, because this is the first beyond.
    std::erase_if(inputs_differ_, [&](std::size_t i) { return within_rounding(i); });
    finding_.inputs_agree = inputs_differ_.empty();
  }

  /// Both values come from ops that are each other's partner, or are the same bits.
  bool within_rounding(std::size_t position) const {
    const auto left = rows_at(steps_.graph_a, a_, position), right = rows_at(steps_.graph_b, b_, position);
    if (left.size() != right.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const OpId maker_a = steps_.graph_a.producer(left[i], a_),
                 maker_b = steps_.graph_b.producer(right[i], b_);
      if (!maker_a || !maker_b || steps_.alignment.of_a[maker_a] != maker_b) return false;
      if (!lies_alike(steps_.graph_a.tensor(left[i]), steps_.graph_b.tensor(right[i]))) return false;
    }
    return true;
  }

  /// As same_view, whatever the format: the two steps may compute in different ones.
  static bool lies_alike(const TensorRow& a, const TensorRow& b) {
    return a.sizes == b.sizes && a.strides == b.strides && a.storage_offset == b.storage_offset;
  }

  static std::vector<TensorId> rows_at(const TraceGraph& graph, OpId op, std::size_t position) {
    std::vector<TensorId> rows;
    for (const TraceGraph::Argument& argument : graph.arguments(op))
      if (static_cast<std::size_t>(argument.position) == position) rows.push_back(argument.row);
    return rows;
  }

  bool is_here(const NumberGroup& group) const {
    return std::any_of(group.places.begin(), group.places.end(),
                       [&](const auto& place) { return place.first == a_; });
  }

  bool try_numbers(const NumberGroup& group) {
    if (group.places.front().first > a_) return false;
    Edits more = edits_;
    for (const auto& [op, constant] : group.places) more.argument(op, constant.position, constant.value);
    if (!agrees(more)) return false;
    edits_ = std::move(more);
    finding_.kind = Kind::argument;
    finding_.name = group.name, finding_.in_a = group.in_a, finding_.in_b = group.in_b;
    finding_.places = static_cast<std::int64_t>(group.places.size());
    finding_.shown = true;
    place(is_here(group) ? a_ : group.places.front().first);
    if (finding_.phase == phase_name(Phase::optimizer))
      finding_.setting = setting_that_differs(steps_.a.doc(), steps_.b.doc(), group.in_a, group.in_b);
    if (finding_.setting == finding_.name) finding_.setting.clear();
    return true;
  }

  /// The same op on the same values, but its generator was in another state.
  bool try_random() {
    const OpRow &left = steps_.graph_a.op(a_), &right = steps_.graph_b.op(b_);
    if ((left.flags & kOpSeeded) == 0 || left.rng == kNone || right.rng == kNone) return false;
    const auto state = [](const Replayer& r, std::int32_t rng) {
      const auto found = r.tensor(r.doc().rng_states.at(static_cast<std::size_t>(rng)));
      return found ? *found : at::Tensor();
    };
    if (!apart(state(steps_.a, left.rng), state(steps_.b, right.rng)).any()) return false;
    Edits more = edits_;
    more.written(a_, both_.made_b);
    edits_ = std::move(more);
    finding_.kind = Kind::random;
    finding_.shown = true;
    return true;
  }

  /// B's values where the inputs differ: and from which ops those come.
  bool try_inputs() {
    Edits made = edits_, given = edits_;
    for (const std::size_t i : inputs_differ_) given.argument(a_, static_cast<int>(i), both_.given_b[i]);
    // Where an op of A alone made them, B's value after that op serves all that read it later.
    const bool everywhere = put_after_makers(made) && agrees(made);
    if (!everywhere && !agrees(given)) return false;
    edits_ = std::move(everywhere ? made : given);
    finding_.shown = true;
    const std::size_t position = inputs_differ_.front();
    for (const OpId op : makers(steps_.graph_a, a_, steps_.alignment.of_a))
      finding_.only_a.push_back(op_words(steps_.graph_a, op));
    for (const OpId op : makers(steps_.graph_b, b_, steps_.alignment.of_b))
      finding_.only_b.push_back(op_words(steps_.graph_b, op));
    finding_.kind = finding_.only_a.empty() && finding_.only_b.empty() ? Kind::input : Kind::operations;
    const auto handle =
        c10::Dispatcher::singleton().findOp({steps_.graph_a.op(a_).name, steps_.graph_a.op(a_).overload});
    if (handle && position < handle->schema().arguments().size())
      finding_.name = handle->schema().arguments()[position].name();
    finding_.in_a = source(steps_.graph_a, a_, position),
    finding_.in_b = source(steps_.graph_b, b_, position);
    return true;
  }

  bool put_after_makers(Edits& edits) const {
    for (const std::size_t i : inputs_differ_) {
      const auto rows = rows_at(steps_.graph_a, a_, i);
      const auto values = tensors_in(both_.given_b[i]);
      if (rows.size() != 1 || values.size() != 1 || !rows[0] || !values[0].defined()) return false;
      const OpId maker = steps_.graph_a.producer(rows[0], a_);
      const TensorRow& row = steps_.graph_a.tensor(rows[0]);
      if (!maker || steps_.alignment.of_a[maker] || values[0].sizes() != at::IntArrayRef(row.sizes))
        return false;
      edits.shown_after(maker, row, values[0]);
    }
    return true;
  }

  /// Ops without a partner from which the differing inputs were computed, back to ops with one.
  std::vector<OpId> makers(const TraceGraph& graph, OpId from, const PerRow<OpRow, OpId>& partner) const {
    std::set<OpId> seen;
    std::vector<std::pair<TensorId, OpId>> open;
    for (const std::size_t i : inputs_differ_)
      for (const TensorId row : rows_at(graph, from, i)) open.emplace_back(row, from);
    while (!open.empty()) {
      const auto [row, before] = open.back();
      open.pop_back();
      const OpId maker = graph.producer(row, before);
      if (!maker || partner[maker] || !seen.insert(maker).second) continue;
      for (const TensorId read : graph.reads(maker)) open.emplace_back(read, maker);
    }
    return {seen.begin(), seen.end()};
  }

  static std::string source(const TraceGraph& graph, OpId op, std::size_t position) {
    std::string text;
    for (const TensorId row : rows_at(graph, op, position)) {
      if (!row || !graph.slot(row)) continue;
      const OpId maker = graph.producer(row, op);
      if (!text.empty()) text += ", ";
      const std::string& name = get(graph.doc(), graph.slot(row)).name;
      text += maker ? op_words(graph, maker) : name.empty() ? "a value from outside" : plain_path(name);
      const TensorRow& t = graph.tensor(row);
      text += " (sizes";
      for (const std::int64_t size : t.sizes) text += " " + std::to_string(size);
      text += ", strides";
      for (const std::int64_t stride : t.strides) text += " " + std::to_string(stride);
      text += ")";
    }
    return text;
  }

  const Steps& steps_;
  const FirstBeyond& first_;
  Edits& edits_;
  const Edits& edits_of_b_;
  OpId a_, b_;
  Both both_;
  std::vector<std::size_t> inputs_differ_;
  Finding finding_;
};

}  // namespace

Finding at_op(const Steps& steps, OpId op) {
  const OpRow& row = steps.graph_a.op(op);
  Finding finding;
  finding.op = row.name;
  finding.module = plain_path(steps.graph_a.module_of(op));
  finding.phase = phase_name(row.phase);
  finding.parameter = parameters_of_updates(steps.graph_a)[op.index()];
  finding.a = op.row(), finding.b = steps.alignment.of_a[op].row();
  finding.places = 1;
  return finding;
}

std::string op_words(const TraceGraph& graph, OpId op) {
  const std::string module = plain_path(graph.module_of(op));
  return graph.op(op).name + (module.empty() ? "" : " in " + module) + " (op " + std::to_string(op.row()) +
         ")";
}

Finding find_reason(const Steps& steps, const FirstBeyond& first, Edits& edits, const Edits& edits_of_b) {
  return Search(steps, first, edits, edits_of_b).find();
}

}  // namespace nanquest::diff
