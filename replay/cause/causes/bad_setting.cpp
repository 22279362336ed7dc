// BAD_SETTING: a number that the user chose is itself NaN, infinite or outside of what its op's formula
// allows: a learning rate of NaN, a temperature of 0, a beta of 1. Proof: the culprit got it as a constant,
// or as a tensor without dimensions that no op of the step made, and everything else that it read was finite.
// A number that is merely large does not count; but a learning rate does that is absurd beside those before
// it, whose update multiplied the weights, if the step is finite with weights of their earlier size.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "probe/trace/op_numbers.h"
#include "replay/case/origin.h"
#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/absurd_number.h"
#include "replay/cause/cause.h"
#include "replay/cause/numbers.h"
#include "replay/cause/ruinous_rate.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// The culprit, and the ops that made its inputs non-finite, a few ops back.
std::vector<std::int32_t> suspects(const Case& c) {
  std::vector<std::int32_t> found = {c.op_index()};
  for (std::size_t i = 0; i < found.size() && found.size() < 8; ++i)
    for (const Case::TensorArgument& a : c.tensor_arguments(found[i])) {
      const std::int32_t maker = c.graph().bad(TensorId{a.tensor}) ? c.producer(a.tensor, found[i]) : kNone;
      if (maker != kNone && std::find(found.begin(), found.end(), maker) == found.end())
        found.push_back(maker);
    }
  return found;
}

/// A number that the program made into a tensor does its harm where it is combined with computed values: the
/// ops that read it.
void add_readers_of_number(const Case& c, std::vector<std::int32_t>& found) {
  const at::Tensor made = c.values(c.op_index()).bad_output();
  if (!made.defined() || made.dim() != 0 || c.op()->name.ends_with('_')) return;
  std::vector<std::int32_t> open = {c.op_index()};
  for (std::size_t i = 0; i < open.size() && open.size() < 8; ++i)
    for (const std::int32_t reader : c.readers(open[i])) {
      const bool moves = moves_elements(c.row(reader)->name);
      const at::Tensor read = c.values(reader).bad_output();
      (moves && read.defined() && read.dim() == 0 ? open : found).push_back(reader);
    }
}

/// Replaces the number where the program put it into a tensor, for all readers.
Change written_otherwise(const Case& c, const Number& number, const Reason& why) {
  Change change;
  change.text = why.what + " set to " + number_text(why.sane) + " instead of " + number_text(number.value);
  change.kind = ChangeKind::hyperparameter;
  change.price = Price::protect_op;
  change.options.edit.output_edit[number.written_by] = [sane = why.sane](std::vector<at::Tensor>& written) {
    for (const at::Tensor& t : written)
      if (t.defined() && t.is_floating_point() && t.numel() == 1) t.fill_(sane);
  };
  add_precision_placebo(c, change, c.op_index(), Precision::fp32);
  return change;
}

/// All other inputs were finite: nothing else explains the values.
bool alone(const Case& c, std::int32_t op, std::size_t position) {
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (i != position)
      for (const at::Tensor& t : tensors_in({arguments[i]}))
        if (!all_finite(t)) return false;
  return true;
}

/// An earlier update's rate: the value left the range of its format, or of its function, because of it.
std::optional<Finding> rate_of_earlier_update(const Case& c) {
  auto found = ruinous_rate(c);
  if (!found) return std::nullopt;
  const std::string step = std::to_string(found->rate.step), rate = number_text(found->rate.rate);
  const std::string usual = found->rate.before > 0
                                ? ", where " + number_text(found->rate.before) + " was the largest before it"
                                : "";
  const Leap& leap = found->leaps.front();
  const auto others = static_cast<std::int64_t>(found->leaps.size()) - 1;
  const std::string more = others > 0 ? " (and those of " + count_text(others, "more layer") + ")" : "";
  Finding f;
  f.origin = Origin::setting;
  f.source = "the run's rates and weights, and the step with weights of their size before that update";
  f.evidence.push_back({"learning rate of step " + step, rate + usual});
  f.evidence.push_back({"weights of " + leap.layer + " before and after the update of step " + step,
                        number_text(leap.before) + ", " + number_text(leap.after)});
  f.evidence.push_back({"the step with " + found->undone.text, "finite"});
  f.explanation = "The update of step " + step + " was made with a learning rate of " + rate + usual +
                  ": it took the weights of " + leap.layer + more + " from " + number_text(leap.before) +
                  " to " + number_text(leap.after) +
                  ". With weights of their earlier size this step is finite; " + "with these, " +
                  c.op_text(c.op_index()) + " makes the first value that is not.";
  f.advice = "Lower the learning rate, or warm it up from a small one: the update of step " + step +
             " multiplied the weights of " + leap.layer + ", and no format mends that.";
  f.wanted.push_back(std::move(found->undone));
  return f;
}

std::optional<Finding> examine_bad_setting(const Case& c, const Subject&) {
  const OpValues& values = c.values(c.op_index());
  if (!c.op() || values.outputs.empty() || all_finite(values.bad_output())) return std::nullopt;
  std::vector<std::pair<Number, Reason>> found;
  std::int32_t op = kNone;
  std::vector<std::int32_t> ops = suspects(c);
  add_readers_of_number(c, ops);
  for (const std::int32_t suspect : ops)
    for (const Number& n : numbers_of(c, suspect))
      if (const auto why = why_absurd(c, suspect, n);
          why && (op == kNone || op == suspect) && alone(c, suspect, n.position))
        found.emplace_back(n, *why), op = suspect;
  if (found.empty()) return rate_of_earlier_update(c);
  if (found.size() != 1) return std::nullopt;
  const auto& [number, why] = found.front();
  Finding f;
  f.origin = why.written ? Origin::op : Origin::setting;
  f.phase = c.row(op)->phase;
  if (op != c.op_index()) f.op = op;
  f.source = "the number as it was handed to the op";
  f.evidence.push_back({why.what, number_text(number.value)});
  const std::string line = called_from(c, op);
  if (!line.empty()) f.evidence.push_back({"called from", line});
  if (why.written)
    f.explanation = "The program itself wrote " + number_text(number.value) +
                    " into what the step computed: " + c.op_text(op) + " was given it as a constant" +
                    (line.empty() ? "." : " (" + line + ").");
  else
    f.explanation = why.what + " was " + number_text(number.value) + ": " + why.reason + ". " +
                    c.op_text(op) + " spreads it over " +
                    count_text(static_cast<std::int64_t>(c.culprit().count), "element") +
                    "; all else that it read was finite." + (line.empty() ? "" : " The call: " + line + ".");
  if (why.written)
    f.advice =
        "Write a finite number there (0, or a large one of the right sign), or leave these elements out of "
        "what is computed from them (a mask on the loss).";
  else
    f.advice =
        "Check settings where they are made (schedules divide by step counts and by warm-up lengths), and "
        "refuse "
        "what is not finite before the first step.";
  if (number.tensor != kNone) {
    const std::int32_t slot = c.doc().tensors[static_cast<std::size_t>(number.tensor)].slot;
    if (!c.doc().slots[static_cast<std::size_t>(slot)].data.empty())
      f.wanted.push_back(replace_scalar(c, slot, why.what, why.sane));
  } else if (number.written_by != kNone) {
    f.wanted.push_back(written_otherwise(c, number, why));
  } else {
    f.wanted.push_back(replace_setting(c, op, {why.what, number.position, number.value, why.sane}));
    // A learning rate is part of several numbers.
    if (!std::isfinite(number.value)) f.wanted.push_back(replace_bad_numbers(c, op, c.row(op)->phase));
  }
  return f;
}

}  // namespace

NANQUEST_CAUSE(bad_setting) = {
    .label = Label::bad_setting,
    .depth = Depth::source,
    .examine = examine_bad_setting,
};

}  // namespace nanquest
