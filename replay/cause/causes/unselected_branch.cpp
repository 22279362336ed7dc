// UNSELECTED_BRANCH: the branch that where() (or a mask, or a maximum) discards still sends NaN back. Proof:
// the branch was infinite or NaN in forward, the loss stays the same when its bad elements are replaced, and
// backward sent them a gradient of exactly zero: zero times an infinite derivative is NaN; or everything is
// finite with two other numbers in their place. The infinity may have been given to the step: a bound, a
// mark.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "replay/blame/suspects.h"
#include "replay/case/branch.h"
#include "replay/case/derivative.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/culprit.h"
#include "replay/cause/known_data.h"
#include "replay/cause/outside_value.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

Finding finding(const Case& c, std::int32_t forward, const at::Tensor& mask, const at::Tensor& bad) {
  Finding f;
  const std::int64_t n = count_true(mask), in_forward = count_true(bad_mask(c.values(forward).bad_output()));
  f.source =
      "zero times infinity is NaN (IEEE 754-2019, 7.2): a derivative is multiplied by the gradient sent to "
      "it";
  f.evidence.push_back({"elements of " + c.op_text(forward) +
                            " that the loss doesn't depend on (changed, and "
                            "the loss came out bit for bit the same)",
                        std::to_string(n) + " of " + std::to_string(mask.numel())});
  f.evidence.push_back({"bad elements among them",
                        std::to_string(count_true(bad)) + " of " + std::to_string(count_true(bad))});
  f.evidence.push_back({"non-finite values in that op's forward result", std::to_string(in_forward)});
  f.explanation =
      c.op_with_number(forward) + " computes " + count_text(n, "element") +
      " that the step throws away afterwards (by where, a mask or a maximum): the loss is the same "
      "whatever stands there. Backward sends them a gradient of exactly zero, but the derivative "
      "there is not finite, and zero times infinity is NaN.";
  f.advice =
      "Choose before the function, not only after it: put a harmless number where the branch isn't used "
      "(y = where(ok, f(where(ok, x, 1)), 0)), so that its derivative is finite there.";
  if (auto change = safe_branch(c, forward, mask, reduced_dimensions(c, forward)))
    f.wanted.push_back(std::move(*change));
  for (const std::int32_t behind : singular_behind(c, forward, mask))
    if (auto change = safe_branch(c, behind, mask, reduced_dimensions(c, behind)))
      f.wanted.push_back(std::move(*change));
  return f;
}

/// Some of the elements that `forward` made there are not finite. (For finite ones with an infinite slope the
/// slope is to blame, whatever made the gradient zero.)
bool is_undefined_there(const Case& c, std::int32_t forward, const at::Tensor& mask) {
  const at::Tensor made = c.values(forward).bad_output();
  return made.defined() && made.sizes() == mask.sizes() &&
         count_true(at::logical_and(mask, bad_mask(made))) > 0;
}

/// The forward op's elements that the bad elements of its derivative belong to; undefined if that is unclear.
at::Tensor elements_of(const Case& c, std::int32_t forward, const at::Tensor& bad,
                       const std::vector<std::int64_t>& reduced) {
  const at::Tensor made = c.values(forward).bad_output();
  if (!made.defined()) return {};
  if (bad.sizes() == made.sizes()) return bad;
  if (!reduced.empty() && bad.dim() == made.dim() + static_cast<std::int64_t>(reduced.size())) {
    at::Tensor sum = bad.to(at::kLong);
    for (auto d = reduced.rbegin(); d != reduced.rend(); ++d) sum = sum.sum(*d);
    if (sum.sizes() == made.sizes()) return sum > 0;
  }
  if (bad.numel() == made.numel()) return bad.reshape(made.sizes());
  return spread(bad, made.sizes(), {});
}

/// The op of the derivative that makes NaN from inputs without NaN: there zero meets infinity, or zero. kNone
/// if there is none.
std::int32_t first_nan(const Case& c, std::int32_t forward) {
  for (const std::int32_t op : derivative_ops(c, forward))
    if (c.graph().written_counts(OpId{op}).nan > 0 && c.graph().read_counts(OpId{op}).nan == 0) return op;
  return kNone;
}

/// A decomposition reads NaN: LAPACK's make numbers of it, on some processors.
bool is_decomposed(const TraceGraph& graph) {
  for (const OpId op : graph.ops()) {
    const std::string name = plain_name(graph.op(op));
    if ((name.starts_with("linalg_") || name.starts_with("_linalg_")) && graph.read_counts(op).nan > 0)
      return true;
  }
  return false;
}

/// All of it is NaN, and the loss is a number: it was removed by its value (nan_to_num, nanmean). No other
/// function makes anything else of NaN, so it was a selection.
bool is_taken_out(const Case& c, std::int32_t forward, const at::Tensor& mask) {
  const at::Tensor made = wide(c.values(forward).bad_output());
  return !is_decomposed(c.graph()) && c.whole(Precision::as_recorded).loss_finite &&
         count_true(at::logical_and(mask, at::logical_not(at::isnan(made)))) == 0;
}

/// The culprit is an op of a derivative. `by_value`: as in loss_ignores.
std::optional<Finding> backward(const Case& c, bool by_value = true) {
  const std::int32_t forward = c.forward_of(c.op_index());
  if (forward == kNone || c.calls(forward).size() != 1) return std::nullopt;
  const at::Tensor bad = bad_mask(c.values(c.op_index()).bad_output());
  const std::vector<std::int64_t> reduced = reduced_dimensions(c, forward);
  if (count_true(bad) == 0 || !sent_zero(c, c.op_index(), bad, reduced)) return std::nullopt;
  const at::Tensor mask = elements_of(c, forward, bad, reduced);
  if (!mask.defined() || !is_undefined_there(c, forward, mask) ||
      !(is_taken_out(c, forward, mask) || loss_ignores(c, forward, mask, by_value)))
    return std::nullopt;
  Finding f = finding(c, forward, mask, bad);
  f.op = first_nan(c, forward);
  return f;
}

/// The op that puts the bad values of `forward` into the gradient that was sent back to it; kNone if there is
/// none.
std::int32_t harmful_derivative(const Case& c, std::int32_t forward) {
  const std::vector<std::int32_t> ops = derivative_ops(c, forward);
  for (const std::int32_t op : ops) {
    if (c.graph().written_counts(OpId{op}).total() == 0) continue;
    for (const Case::TensorArgument& a : c.tensor_arguments(op))
      if (const std::int32_t maker = c.producer(a.tensor, op);
          c.row(maker) && c.row(maker)->phase == Phase::backward && maker < ops.front())
        return op;
  }
  return kNone;
}

/// Whether every op of forward that reads the bad values of `op`, or what became of them in forward, makes
/// finite ones of them in the end. What derivatives do with them does not count.
bool is_thrown_away_in_forward(const Case& c, std::int32_t op) {
  const TraceGraph& graph = c.graph();
  std::set<std::int32_t> bad_after = {op};
  bool thrown_away = false;
  for (std::vector<OpId> left = {OpId{op}}; !left.empty();) {
    const OpId current = left.back();
    left.pop_back();
    for (const OpId later : graph.consumers(current)) {
      if (graph.op(later).phase != Phase::forward || graph.read_counts(later).total() == 0) continue;
      if (graph.written_counts(later).total() == 0)
        thrown_away = true;
      else if (bad_after.insert(later.row()).second)
        left.push_back(later);
    }
  }
  const TensorId loss{c.doc().loss};
  const OpId maker = loss ? graph.producer(loss, graph.end()) : OpId();
  return thrown_away && !(maker && bad_after.contains(maker.row()));
}

/// The choice made before each of these functions.
std::optional<Change> choice_before(const Case& c, const std::map<std::int32_t, at::Tensor>& branch) {
  std::optional<Change> all;
  for (const auto& [op, mask] : branch) {
    const auto change = safe_branch(c, op, mask, reduced_dimensions(c, op));
    if (!change) return std::nullopt;
    all = all ? together(std::move(*all), *change) : *change;
  }
  return all;
}

/// The step's own loss is computed from a derivative (create_graph): what forward throws away comes back in
/// that. Shown by the structure of forward, and by the step with the choice made before the function.
std::optional<Finding> in_a_derivative(const Case& c) {
  const std::int32_t op = c.op_index();
  std::map<std::int32_t, at::Tensor> branch;
  for (const Suspect& suspect : c.blame().set) {
    const std::int32_t row = suspect.op.row();
    if (!c.row(row) || c.row(row)->phase != Phase::forward || plain_name(*c.row(row)) != plain_name(*c.op()))
      continue;
    if (!is_thrown_away_in_forward(c, row)) return std::nullopt;
    branch.emplace(row, bad_mask(c.values(row).bad_output()));
  }
  std::optional<Change> chosen_before = choice_before(c, branch);
  if (!chosen_before || run_change(c, *chosen_before) != TrialResult::finite) return std::nullopt;
  const at::Tensor bad = bad_mask(c.values(op).bad_output());
  Finding f = finding(c, op, bad, bad);
  f.evidence.front() = {"bad elements of " + c.op_with_number(op) + " that no operation of forward keeps",
                        std::to_string(count_true(bad)) + " of " + std::to_string(bad.numel())};
  f.explanation =
      c.op_with_number(op) + " computes " + count_text(count_true(bad), "element") +
      " that forward throws away afterwards (by where, a mask or a maximum). The loss is computed "
      "from a derivative of it, where they come back: a gradient of zero times a derivative that "
      "is not finite is NaN.";
  f.wanted = {std::move(*chosen_before)};
  return f;
}

/// The first op of backward that makes NaN of what `forward` made; kNone if there is none.
std::int32_t first_of_backward(const Case& c, std::int32_t forward) {
  for (const OpId op : c.graph().ops())
    if (c.graph().op(op).phase == Phase::backward && c.graph().written_counts(op).nan > 0)
      return ancestors(c.graph(), op)[OpId{forward}] ? op.row() : kNone;
  return kNone;
}

/// The bad elements of a forward op, if the loss doesn't depend on them; undefined otherwise.
at::Tensor ignored_elements(const Case& c, std::int32_t op) {
  if (c.calls(op).size() != 1) return {};
  const at::Tensor made = c.values(op).bad_output();
  if (!made.defined()) return {};
  const at::Tensor bad = bad_mask(made);
  return count_true(bad) > 0 && (is_taken_out(c, op, bad) || loss_ignores(c, op, bad)) ? bad : at::Tensor();
}

/// The same of every forward op that is blamed together with `op`, itself or by its derivative: one branch
/// may compute several functions.
std::map<std::int32_t, at::Tensor> ignored_with(const Case& c, std::int32_t op, const at::Tensor& bad) {
  constexpr std::size_t kMost = 8;
  std::map<std::int32_t, at::Tensor> all = {{op, bad}};
  for (const Suspect& suspect : c.blame().set) {
    const OpRow* const row = c.row(suspect.op.row());
    if (!row || all.size() >= kMost) continue;
    const std::int32_t forward =
        row->phase == Phase::forward ? suspect.op.row() : c.forward_of(suspect.op.row());
    if (forward == kNone || all.contains(forward)) continue;
    if (const at::Tensor ignored = ignored_elements(c, forward); ignored.defined())
      all.emplace(forward, ignored);
  }
  return all;
}

/// Loss and gradients are finite whatever stands there. (Derivatives that read what a function was given, and
/// not what it made, need `choice_before`.)
bool is_finite_with_others(const Case& c, const std::map<std::int32_t, at::Tensor>& branch) {
  for (const double number : {0.75, 1.5}) {
    RunOptions options;
    for (const auto& entry : branch)
      options.edit.output_edit[entry.first] = [mask = entry.second,
                                               number](std::vector<at::Tensor>& written) {
        for (const at::Tensor& t : written)
          if (t.defined() && t.sizes() == mask.sizes() && t.is_floating_point())
            at::Tensor(t).masked_fill_(mask, number);
      };
    const RunResult run = c.run(options);
    if (!run.loss_finite || !run.gradients_finite) return false;
  }
  return true;
}

/// By the trace the culprit is the forward op, whose infinities become harmful only in backward.
std::optional<Finding> forward(const Case& c) {
  const std::int32_t op = c.op_index();
  const bool differentiated = c.calls(op).size() == 1 && !derivative_ops(c, op).empty();
  if (!c.whole(Precision::as_recorded).loss_finite)
    return differentiated && c.has_time() ? in_a_derivative(c) : std::nullopt;
  // Inside a region that was opened nothing differentiates it, and the loss is the recorded one.
  const std::int32_t harmful = differentiated ? kNone : first_of_backward(c, op);
  if (!differentiated && harmful == kNone) return std::nullopt;
  const at::Tensor bad = ignored_elements(c, op);
  if (!bad.defined()) return std::nullopt;
  const std::map<std::int32_t, at::Tensor> branch = ignored_with(c, op, bad);
  std::optional<Change> chosen_before;
  if (branch.size() > 1) chosen_before = choice_before(c, branch);
  const bool shown = is_finite_with_others(c, branch) ||
                     (chosen_before && run_change(c, *chosen_before) == TrialResult::finite);
  if (!shown) return std::nullopt;
  Finding f = finding(c, op, bad, bad);
  if (chosen_before) f.wanted.insert(f.wanted.begin(), std::move(*chosen_before));
  // What forward discards does no harm: the derivative that sends it back does.
  f.op = first_nan(c, op);
  if (f.op == kNone) f.op = harmful_derivative(c, op);
  if (f.op == kNone) f.op = harmful;
  if (f.op != kNone) f.phase = Phase::backward;
  return f;
}

/// `op`, or one that it was computed from, reads this memory.
bool is_made_of(const Case& c, std::int32_t op, std::int32_t slot) {
  const PerRow<OpRow, bool> behind = ancestors(c.graph(), OpId{op});
  const auto& reads = c.graph().reads(SlotId{slot});
  return std::any_of(reads.begin(), reads.end(),
                     [&](const TraceGraph::Read& read) { return behind[read.op]; });
}

/// The program was given infinities as bounds or marks, and throws away what it computes of them: the
/// derivative that sends it back does the harm, and not the data. What a model is called with must be thrown
/// away whatever it is: a maximum of data that holds an infinity is no sign that it was meant.
std::optional<Finding> of_outside(const Case& c) {
  const auto value = outside_value(c);
  if (!value || value->slot == kNone || !c.whole(Precision::as_recorded).loss_finite ||
      count_true(at::isnan(wide(value->tensor))) > 0)
    return std::nullopt;
  for (const OpId op : c.graph().ops()) {
    if (c.graph().op(op).phase != Phase::backward || c.graph().written_counts(op).nan == 0 ||
        c.graph().read_counts(op).nan > 0)
      continue;
    SnapshotDoc doc = c.doc();
    blame_suspect(doc, {op, {}, {.nan = true}});
    const Case there = c.with(std::move(doc));
    auto f = backward(there, /*by_value=*/!is_given_to_model(c, *value));
    const std::int32_t forward = there.forward_of(op.row());
    if (!f || !is_made_of(c, forward, value->slot)) return std::nullopt;
    if (f->op == kNone) f->op = op.row();
    f->origin = Origin::op;
    f->phase = Phase::backward;
    f->evidence.push_back({"infinities that the step was given in " + value->name, bad_text(value->tensor)});
    return f;
  }
  return std::nullopt;
}

std::optional<Finding> examine_unselected_branch(const Case& c, const Subject&) {
  if (c.culprit().origin == word(Origin::input)) return c.op() ? of_outside(c) : std::nullopt;
  const OpValues& values = c.values(c.op_index());
  if (!c.op() || values.outputs.empty() || !values.bad_output().is_floating_point()) return std::nullopt;
  return c.op()->phase == Phase::backward ? backward(c) : forward(c);
}

}  // namespace

NANQUEST_CAUSE(unselected_branch) = {
    .label = Label::unselected_branch,
    .origins = {Origin::op, Origin::input},
    .phases = {Phase::forward, Phase::backward},
    .depth = Depth::use,
    .examine = examine_unselected_branch,
};

}  // namespace nanquest
