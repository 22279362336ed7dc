#include "replay/diff/reason.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>

#include "replay/diff/formats.h"
#include "replay/diff/inputs.h"
#include "replay/diff/optimizer_settings.h"
#include "replay/diff/pair_values.h"
#include "replay/diff/passed_numbers.h"
#include "replay/verdict/sentences.h"

namespace nanquest::diff {
namespace {

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
    both_ = values_at(steps_, first_.pair, edits_, edits_of_b_);
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
    const auto widened = try_formats(steps_, first_, before, edits_of_b_,
                                     makers(steps_.graph_a, a_, steps_.alignment.of_a, inputs_differ_),
                                     makers(steps_.graph_b, b_, steps_.alignment.of_b, inputs_differ_));
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

  bool agrees(const Edits& edits) const {
    const PairValues now = values_at(steps_, first_.pair, edits, edits_of_b_);
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
    inputs_differ_ = differing_inputs(steps_, first_.pair, both_);
    finding_.inputs_agree = inputs_differ_.empty();
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
    for (const OpId op : makers(steps_.graph_a, a_, steps_.alignment.of_a, inputs_differ_))
      finding_.only_a.push_back(words_of(steps_.graph_a, op));
    for (const OpId op : makers(steps_.graph_b, b_, steps_.alignment.of_b, inputs_differ_))
      finding_.only_b.push_back(words_of(steps_.graph_b, op));
    finding_.kind = finding_.only_a.empty() && finding_.only_b.empty() ? Kind::input : Kind::operations;
    const auto handle =
        c10::Dispatcher::singleton().findOp({steps_.graph_a.op(a_).name, steps_.graph_a.op(a_).overload});
    if (handle && position < handle->schema().arguments().size())
      finding_.name = handle->schema().arguments()[position].name();
    finding_.in_a = source_words(steps_.graph_a, a_, position),
    finding_.in_b = source_words(steps_.graph_b, b_, position);
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
      const auto written = steps_.graph_a.written(maker);
      const auto entry = std::find_if(written.begin(), written.end(), [&](TensorId id) {
        return steps_.graph_a.slot(id) == steps_.graph_a.slot(rows[0]);
      });
      if (entry == written.end()) return false;
      edits.shown_after(maker, static_cast<std::size_t>(entry - written.begin()), row, values[0]);
    }
    return true;
  }

  const Steps& steps_;
  const FirstBeyond& first_;
  Edits& edits_;
  const Edits& edits_of_b_;
  OpId a_, b_;
  PairValues both_;
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

std::string words_of(const TraceGraph& graph, OpId op) {
  return op_words(graph.op(op).name, plain_path(graph.module_of(op)), op.row());
}

Finding find_reason(const Steps& steps, const FirstBeyond& first, Edits& edits, const Edits& edits_of_b) {
  return Search(steps, first, edits, edits_of_b).find();
}

}  // namespace nanquest::diff
