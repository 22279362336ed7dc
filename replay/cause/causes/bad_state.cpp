// BAD_STATE: a weight, buffer or optimizer state was bad when the step began, or the program copied bad
// numbers into it that no op computed. Proof: the stored tensor. What spoiled it came before, so this
// snapshot can't name it.
#include <ATen/ATen.h>

#include <set>
#include <string_view>

#include "probe/trace/names.h"
#include "probe/trace/origins.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/known_data.h"
#include "replay/cause/outside_value.h"
#include "replay/cause/provenance.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// Arguments that hold variances or sums of squares, by their names in PyTorch's schemas: they can never be
/// negative.
bool holds_squares(std::string_view argument) {
  static const std::set<std::string_view> names = {"running_var", "exp_avg_sqs", "max_exp_avg_sqs",
                                                   "state_sums"};
  return names.count(argument) > 0;
}

Finding negative_finding(const Case& c, const std::string& what, const std::string& argument,
                         std::int64_t negative, Change absolute) {
  Finding f;
  f.source = "the state as the op read it, and the step with its absolute values";
  f.evidence.push_back(
      {"negative elements of " + what + ", a variance or a mean of squares", std::to_string(negative)});
  f.explanation =
      "The step began with a state that can't be one: " + what + ", which " + c.op_text(c.op_index()) +
      " reads as " + argument + ", holds " + count_text(negative, "negative element") +
      ", and a root is taken of it. Finite as it is, the damage was done in an earlier step or in "
      "the file it was loaded from.";
  f.advice =
      "Load the last good checkpoint; look for what wrote this state by hand (a conversion, a "
      "subtraction of averages, a cast to a format without the range).";
  f.wanted.push_back(std::move(absolute));
  return f;
}

/// The memory that an op reads as a variance or a sum of squares, as it came from outside, with its negative
/// elements; none if there are none.
std::int64_t negative_squares(const Case& c, OpId op, const TraceGraph::Argument& a) {
  const SlotId slot = a.row ? c.graph().slot(a.row) : SlotId{};
  if (!slot || !holds_squares(argument_name(c.graph().op(op), static_cast<std::size_t>(a.position))) ||
      c.graph().producer(a.row, op) || comes_with_batch(get(c.doc(), slot).origin))
    return 0;
  const auto held = c.read(get(c.doc(), slot).data);
  return held && held->is_floating_point() && all_finite(*held) ? count_true(*held < 0) : 0;
}

/// All memory of this kind that the step reads, with its absolute values: a model is made of many.
Change all_absolute(const Case& c, SlotId first, const std::string& what) {
  Change all = replace_negative(c, {first.row()}, what);
  const std::string text = all.text, placebo_text = all.placebo_text;
  std::set<std::int32_t> slots = {first.row()};
  for (const OpId op : c.graph().ops())
    for (const TraceGraph::Argument& a : c.graph().arguments(op))
      if (negative_squares(c, op, a) > 0 && slots.insert(c.graph().slot(a.row).row()).second)
        all = together(std::move(all), replace_negative(c, {c.graph().slot(a.row).row()}, "it"));
  const std::string more = ", and the same in " + std::to_string(slots.size() - 1) + " more";
  all.text = text + more;
  if (!all.placebo.empty()) all.placebo_text = placebo_text + more;
  return all;
}

/// The culprit got a finite state that is impossible, and the step is finite with its absolute value.
std::optional<Finding> negative_square(const Case& c) {
  if (!c.op()) return std::nullopt;
  const OpId op{c.op_index()};
  for (const TraceGraph::Argument& a : c.graph().arguments(op)) {
    const std::int64_t negative = negative_squares(c, op, a);
    if (negative == 0) continue;
    const std::string argument = argument_name(*c.op(), static_cast<std::size_t>(a.position));
    const SlotId slot = c.graph().slot(a.row);
    const std::string what = c.slot_text(slot.row());
    Change absolute = replace_negative(c, {slot.row()}, what);
    if (run_change(c, absolute) != TrialResult::finite) {
      absolute = all_absolute(c, slot, what);
      if (run_change(c, absolute) != TrialResult::finite) continue;
    }
    return negative_finding(c, what, argument, negative, std::move(absolute));
  }
  return std::nullopt;
}

/// All copies of bad numbers that no op computed into what lives on, with zeros for these numbers.
std::optional<Change> mended_copies(const Case& c) {
  std::optional<Change> all;
  int tensors = 0;
  for (const OpId op : c.graph().ops()) {
    if (!state_copied_into(c, op.row())) continue;
    for (const TensorId row : c.graph().reads(op)) {
      const OpId maker = c.graph().producer(row, op);
      const bool by_host = maker && (c.graph().op(maker).flags & kOpHostWrite);
      const SlotId slot = c.graph().slot(row);
      if (!slot || !c.graph().bad(row) || (maker && !by_host)) continue;
      Change one = replace_non_finite(c, {slot.row(), by_host ? maker.row() : kNone}, "it");
      all = all ? together(std::move(*all), one) : std::move(one);
      ++tensors;
    }
  }
  if (!all) return std::nullopt;
  const std::string what = " elements of what is copied into the program's state (" +
                           count_text(tensors, "tensor") + ") replaced by zero";
  all->text = "non-finite" + what;
  if (!all->placebo.empty()) all->placebo_text = "as many finite" + what;
  return all;
}

/// The program put bad numbers into a weight, a buffer or a moment: loaded, averaged or aggregated outside of
/// PyTorch.
std::optional<Finding> copied_in(const Case& c) {
  const SlotId kept = state_copied_into(c, c.op_index());
  const auto value = kept ? outside_value(c) : std::nullopt;
  if (!value) return std::nullopt;
  const SlotOrigin origin = state_origin(c, kept);
  const std::string what = c.slot_text(kept.row()) + " (" + std::string(origin_name(origin)) + ")";
  Finding f;
  f.origin = from_word<Origin>(origin_name(origin));
  f.phase = Phase::input;
  f.source = "the numbers as they were copied, stored in the snapshot";
  f.evidence.push_back({"non-finite in what is copied into " + what, bad_text(value->tensor)});
  f.explanation = "The program put bad numbers into its own state: " + c.op_text(c.op_index()) + " copies " +
                  bad_text(value->tensor) + " into " + what +
                  ". No operation on record computed them: they were loaded, or computed outside of PyTorch "
                  "(an average or an aggregate in NumPy).";
  f.advice =
      "Check what is loaded into a model before it is copied (isfinite), and keep the old values where it is "
      "bad; look at what made these numbers (a mean over no clients, a division by a count of 0).";
  f.doubt = doubt_of_written(c, *value);
  if (auto change = mended_copies(c)) f.wanted.push_back(std::move(*change));
  return f;
}

/// What is to be done where the record says where the value comes from, and where it does not.
std::string advice_of(const OutsideValue& value, const Provenance& from) {
  if (from.rival == Label::uninitialized)
    return "Look at " + value.name +
           " with isfinite after the model is made, after to_empty or a move, and after load_state_dict: the "
           "first "
           "of these after which it is bad is to blame. What is not persistent is in no checkpoint and needs "
           "a "
           "value of its own.";
  if (from.by_program)
    return "Find where the program fills " + value.name +
           " (the log of a probability of 0, a quotient by 0) and give this element a finite value there, or "
           "do not "
           "read it.";
  if (!from.open.empty())
    return "Look at what is computed outside of PyTorch just before this operation (NumPy, C++, a "
           "torch.autograd.Function of the program): check its result with isfinite.";
  return value.group == "buffers" ? "Load the last good checkpoint; a running statistic keeps one bad batch "
                                    "for ever, so undo skipped "
                                    "steps completely or reset the statistic."
                                  : "Load the last good checkpoint; check gradients before clipping and the "
                                    "optimizer, so that a bad "
                                    "step never writes state.";
}

std::optional<Finding> examine_bad_state(const Case& c, const Subject&) {
  if (c.culprit().origin == word(Origin::op)) return negative_square(c);
  if (c.culprit().origin == word(Origin::input)) return copied_in(c);
  const auto value = outside_value(c);
  if (!value || value->group == "batch" || is_meant_in_state(c, *value)) return std::nullopt;
  const Provenance from = provenance_of_state(c, *value);
  Finding f;
  f.source = "the " + value->group + " as stored in the snapshot, at the start of the step";
  f.evidence.push_back({"non-finite in " + value->name, bad_text(value->tensor)});
  if (!from.shown.empty()) f.evidence.push_back({"where it comes from", from.shown});
  f.explanation = from.open.empty() || from.rival
                      ? "The step began with a bad value: " + value->name + " (" + value->group +
                            ") already held " + bad_text(value->tensor) + ". "
                      : "No operation on record made this value: " + value->name + " holds " +
                            bad_text(value->tensor) + ". ";
  f.explanation += c.op_text(c.op_index()) + " is the first op that reads it";
  if (from.by_program)
    f.explanation += "; the program wrote it there before it was first used";
  else if (from.open.empty())
    f.explanation += "; the damage was done in an earlier step or in the file it was loaded from";
  f.explanation += "." + from.known;
  f.advice = advice_of(*value, from);
  f.doubt = from.open;
  f.rival = from.rival;
  if (value->slot != kNone) f.wanted.push_back(replace_non_finite(c, {value->slot}, value->name));
  return f;
}

}  // namespace

NANQUEST_CAUSE(bad_state) = {
    .label = Label::bad_state,
    .origins = {Origin::op, Origin::input, Origin::parameter, Origin::buffer, Origin::optimizer_state},
    .depth = Depth::operand,
    .examine = examine_bad_state,
};

}  // namespace nanquest
