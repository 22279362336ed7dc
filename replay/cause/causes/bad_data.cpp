// BAD_DATA: the batch itself holds NaN or Inf. Proof: the stored batch tensor, read from the file; or the
// program wrote NaN into its data by an op with NaN as a constant.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "probe/trace/births.h"
#include "probe/trace/samples.h"
#include "replay/blame/suspects.h"
#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/absurd_sample.h"
#include "replay/cause/cause.h"
#include "replay/cause/known_data.h"
#include "replay/cause/numbers.h"
#include "replay/cause/outside_value.h"
#include "replay/cause/provenance.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// NaN that an op of the program wrote into data, between the passes of its models. Infinities may be
/// markers.
std::optional<Finding> written_by_program(const Case& c) {
  if (!c.op() || c.op()->phase != Phase::forward || !bad_constants(c.doc(), OpId{c.op_index()}).nan)
    return std::nullopt;
  const std::vector<Number> numbers = numbers_of(c, c.op_index());
  const auto nan = std::find_if(numbers.begin(), numbers.end(),
                                [](const Number& n) { return std::isnan(n.value) && !n.computed; });
  const at::Tensor written = c.values(c.op_index()).bad_output();
  // A tensor made of one number is not data yet.
  if (!written.defined() || (written.dim() == 0 && !c.op()->name.ends_with('_'))) return std::nullopt;
  if (nan == numbers.end() || nan->tensor != kNone || !writes_marks(plain_name(*c.op())) ||
      !works_on_data(c, c.op_index()))
    return std::nullopt;
  Finding f;
  f.origin = Origin::input;
  f.phase = Phase::input;
  f.not_computed = true;
  f.source = "the constant as it was handed to the op";
  f.evidence.push_back({"the number that is written", "nan"});
  const std::string line = called_from(c, c.op_index());
  if (!line.empty()) f.evidence.push_back({"called from", line});
  f.explanation = "The program itself wrote NaN into its data: " + c.op_text(c.op_index()) +
                  " was given it as a constant" + (line.empty() ? "" : " (" + line + ")") +
                  ", and nothing of a model went into what it wrote to.";
  f.advice =
      "If NaN marks what is missing there, leave it out of everything that is computed from it (a mask, "
      "nan_to_num, nanmean) "
      "before the model or the loss sees it.";
  Change change = replace_setting(c, c.op_index(),
                                  {"the number that is written into the data", nan->position, nan->value, 0});
  change.kind = ChangeKind::data;
  f.wanted.push_back(std::move(change));
  return f;
}

/// " (row 205 of the memory that it is a part of)", and the value compared with the others.
std::string absurd_text(const AbsurdSample& s) {
  std::string place;
  for (const std::int64_t i : s.place) place += (place.empty() ? "" : ", ") + std::to_string(i);
  return (s.is_sample ? "Sample " : "Row ") + std::to_string(s.row) +
         (s.row_in_memory >= 0
              ? " (row " + std::to_string(s.row_in_memory) + " of the memory it is read from)"
              : "") +
         " of " + (s.name.empty() ? "a tensor that the step was given" : s.name) + " holds " +
         number_text(s.value) + " at [" + place + "], where 99.9 % of the other values are below " +
         number_text(s.usual);
}

/// A finite value that cannot be data made the op go wrong.
std::optional<Finding> absurd_value(const Case& c) {
  auto sample = absurd_sample(c);
  if (!sample) return std::nullopt;
  Finding f;
  f.depth = Depth::source;
  f.origin = Origin::input;
  f.phase = Phase::input;
  f.op = sample->reader;
  f.source = "the batch as stored in the snapshot, the step on the batch before it, and without this sample";
  f.evidence.push_back({"largest value of " + sample->name, number_text(sample->value)});
  f.evidence.push_back({"99.9th percentile of the magnitudes of the rest", number_text(sample->usual)});
  f.evidence.push_back({"the step with the batch of step " + std::to_string(c.twin()->step()), "finite"});
  f.evidence.push_back({"the step with that row replaced by another", "finite"});
  f.explanation = absurd_text(*sample) + ". With another row in its place, and with the batch of step " +
                  std::to_string(c.twin()->step()) +
                  ", the step is finite. What it does there: " + c.op_text(c.op_index()) +
                  " leaves the range of its format or its domain.";
  f.advice =
      "Check this sample: a fill value, a wrong unit or a broken record. Repair or drop it, and check the "
      "size "
      "of values when data is loaded. A wider format would only hide it.";
  if (sample->is_sample) f.poison = {sample->row};
  f.wanted.push_back(std::move(sample->without));
  return f;
}

/// " in sample 3 (cat.png), 5 and 2 more".
std::string samples_text(const Case& c, const std::vector<std::int64_t>& poison) {
  std::string text;
  for (std::size_t i = 0; i < poison.size() && i < 5; ++i) {
    text += (i ? ", " : " in sample ") + std::to_string(poison[i]);
    if (const std::string id = sample_id(c.doc(), poison[i]); !id.empty()) text += " (" + id + ")";
  }
  if (poison.size() > 5) text += " and " + std::to_string(poison.size() - 5) + " more";
  return text;
}

/// The model was called with it.
void say_of_batch(const Case& c, const OutsideValue& value, Finding& f) {
  f.source = "the batch as stored in the snapshot";
  f.explanation = "The batch was bad when the model got it: " + value.name + " holds " +
                  bad_text(value.tensor) + samples_text(c, f.poison) + ". " + c.op_text(c.op_index()) +
                  " is the first op on record that reads it; what made the batch is not on record.";
  f.advice =
      "Check samples for NaN and Inf when they are loaded, and after what is computed on them before the "
      "model is called (a division by a standard deviation of 0); repair or drop these, and keep the "
      "list of what was dropped.";
}

/// Something else that was there when the step began.
void say_of_outside(const Case& c, const OutsideValue& value, Finding& f) {
  f.source = "the tensor as it was when the step first read it, stored in the snapshot";
  f.explanation =
      (is_target(c, value) ? "The target of the loss is not finite: it was bad when it was first read, by "
                           : "A tensor that the step did not compute was bad when it was first read, by ") +
      c.op_text(c.op_index()) + ": it holds " + bad_text(value.tensor) + samples_text(c, f.poison) +
      ". It is no weight or buffer of a model, nor was the model called with it: a target, a "
      "mask, or something that the program keeps. What made it is not on record.";
  f.advice = "Find where this tensor is made or last written, and check it there before the step reads it.";
}

/// Numbers that the program put into new memory while the step ran.
void say_of_written(const Case& c, const OutsideValue& value, Finding& f) {
  f.source = "the numbers as the program wrote them, stored in the snapshot";
  f.explanation = "No op of the step made this value: the program put " + bad_text(value.tensor) +
                  " into a new tensor (" + value.name + ") while the step ran. " + c.op_text(c.op_index()) +
                  " reads it first.";
  f.advice =
      "These numbers were computed outside of PyTorch (in Python, NumPy or C++): check them for NaN and "
      "Inf before the tensor is made of them.";
}

std::optional<Finding> examine_bad_data(const Case& c, const Subject&) {
  if (c.culprit().origin == word(Origin::op)) {
    auto f = written_by_program(c);
    return f ? f : absurd_value(c);
  }
  const auto value = outside_value(c);
  if (!value || value->group != "batch") return std::nullopt;
  if (state_copied_into(c, c.op_index())) return std::nullopt;
  Finding f;
  f.evidence.push_back({"non-finite in " + value->name, bad_text(value->tensor)});
  f.poison = bad_samples(c, value->tensor);
  const bool written = value->host_write != kNone, given = !written && is_given_to_model(c, *value);
  (written ? say_of_written : given ? say_of_batch : say_of_outside)(c, *value, f);
  const Provenance from = provenance_of_data(c, *value, f.poison);
  f.doubt = from.open;
  f.rival = from.rival;
  f.explanation += from.known;
  if (!from.known.empty())
    f.advice =
        "Look at the place where it fails (a row that is masked as a whole, masks that add up to -Inf): give "
        "it something to attend to, or clamp the sum of the masks to the lowest finite number.";
  if (!from.shown.empty()) f.evidence.push_back({"where it comes from", from.shown});
  if (value->slot == kNone) return f;
  const OutsidePlace place{value->slot, value->host_write};
  f.wanted.push_back(replace_non_finite(c, place, value->name));
  // All zeros may be just as bad (a standard deviation of 0); values of a good batch are not.
  if (auto healthy = replace_by_healthy(c, place, value->name)) f.wanted.push_back(std::move(*healthy));
  return f;
}

}  // namespace

NANQUEST_CAUSE(bad_data) = {
    .label = Label::bad_data,
    .origins = {Origin::input, Origin::op},
    .depth = Depth::operand,
    .examine = examine_bad_data,
};

}  // namespace nanquest
