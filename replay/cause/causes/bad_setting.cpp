// BAD_SETTING: a number that the user chose is itself NaN, infinite or outside of what its op's formula
// allows: a learning rate of NaN, a temperature of 0, a beta of 1. Proof: the culprit got it as a constant,
// or as a tensor without dimensions that no op of the step made, and everything else that it read was finite.
// A number that is merely large does not count.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "replay/case/origin.h"
#include "replay/case/scale.h"
#include "replay/case/values.h"
#include "replay/cause/cause.h"
#include "replay/cause/numbers.h"
#include "replay/verdict/numbers.h"

namespace nanquest {
namespace {

/// The op's result is used by a softmax or a sigmoid within a few ops: it was a logit.
bool is_logit(const Case& c, std::int32_t op) {
  static const std::set<std::string> ends = {
      "_softmax",    "_log_softmax",   "softmax",
      "log_softmax", "sigmoid",        "log_sigmoid_forward",
      "logsumexp",   "gumbel_softmax", "binary_cross_entropy_with_logits",
      "multinomial"};
  const std::set<std::int32_t> users = c.readers_within(op, 4);
  return std::any_of(users.begin(), users.end(),
                     [&](std::int32_t user) { return ends.count(plain_name(*c.row(user))) > 0; });
}

/// What is divided is the root of a second moment, or a moment: the divisor is a bias correction, 1 - beta^t.
bool divides_a_moment(const Case& c, std::int32_t division) {
  for (const Case::TensorArgument& a : c.tensor_arguments(division)) {
    std::int32_t row = a.tensor, before = division;
    for (int hops = 0; hops < 3; ++hops) {
      const std::int32_t slot = c.doc().tensors[static_cast<std::size_t>(row)].slot;
      if (slot != kNone &&
          c.doc().slots[static_cast<std::size_t>(slot)].origin == SlotOrigin::optimizer_state)
        return true;
      const std::int32_t maker = c.producer(row, before);
      const OpRow* op = c.row(maker);
      if (!op || (plain_name(*op) != "sqrt" && plain_name(*op) != "clone")) break;
      const auto arguments = c.tensor_arguments(maker);
      if (arguments.empty()) break;
      row = arguments.front().tensor, before = maker;
    }
  }
  return false;
}

/// The result of `op` has fewer elements than its inputs.
bool is_reduced(const Case& c, std::int32_t op) {
  if (!c.row(op)) return false;
  const OpValues& values = c.values(op);
  const std::int64_t made =
      values.outputs.empty() || !values.outputs[0].defined() ? 0 : values.outputs[0].numel();
  const std::vector<at::Tensor> read = tensors_in(values.arguments);
  return std::any_of(read.begin(), read.end(), [&](const at::Tensor& t) { return t.numel() > made; });
}

/// Another operand is a yes/no tensor: what an infinity does to a mask belongs to another cause.
bool multiplies_a_mask(const Case& c, std::int32_t op, std::size_t position) {
  const std::size_t n = c.values(op).arguments.size();
  for (std::size_t i = 0; i < n; ++i)
    if (i != position && is_selection(c, op, i)) return true;
  return false;
}

struct Reason {
  std::string what;    ///< "the temperature"
  std::string reason;  ///< why no such number can be intended
  double sane;
  bool written = false;  ///< it was put into what the step computed, unchanged
};

/// A marker for missing values was put into what a model computed.
std::optional<Reason> mark(const Case& c, std::int32_t at, const Number& n) {
  if (std::isfinite(n.value) || works_on_data(c, at)) return std::nullopt;
  if (!std::isnan(n.value) && at != c.op_index()) return std::nullopt;
  return Reason{"the number that is written (" + role_of(c, at, n) + ")",
                std::isnan(n.value) ? "it is not a number" : "it is infinite", 0, true};
}

/// Why this number can't be intended; nothing if it can.
std::optional<Reason> absurd(const Case& c, std::int32_t at, const Number& n) {
  const std::string op = plain_name(*c.row(at));
  const bool update = c.row(at)->phase == Phase::optimizer;
  const std::string argument = role_of(c, at, n);
  const bool division = (op == "div" || op == "true_divide") && n.name == "other";
  const bool multiplication = op == "mul" && (n.name == "other" || n.name == "self");
  // In other ops these names may stand for a number that is written.
  const bool factor =
      ((op == "addcmul" || op == "addcdiv") && n.name == "value") || (op == "lerp" && n.name == "weight");
  if (writes_marks(op)) return mark(c, at, n);
  if (n.name == "ord" || n.name == "p" || n.name == "norm_type") return std::nullopt;
  if (std::isnan(n.value))
    return Reason{argument, "it is not a number", division || multiplication ? 1.0 : 0.0};
  static const std::set<std::string> settings = {"alpha",  "beta",         "eps",       "momentum",
                                                 "lr",     "beta1",        "beta2",     "value",
                                                 "weight", "weight_decay", "dampening", "scale"};
  if (std::isinf(n.value)) {
    if (settings.count(n.name) && (update || factor || (n.name != "value" && n.name != "weight")))
      return Reason{argument, "it is infinite", 0};
    // A learning rate may have its sign turned before it multiplies an update.
    if ((multiplication || op == "neg") && update) return Reason{argument, "it is infinite", 1};
    if (multiplication && !multiplies_a_mask(c, at, n.position) && (n.tensor == kNone || n.value > 0))
      return Reason{is_logit(c, at) ? "the factor of the logits (1 / temperature, " + argument + ")"
                                    : "the factor (" + argument + ")",
                    "it is infinite", 1};
    if (op == "pow" && n.name == "exponent")
      return Reason{"the exponent (" + argument + ")", "it is infinite", 1};
    return std::nullopt;
  }
  if (n.name == "eps" && n.value < 0) return Reason{argument, "an epsilon below 0 protects nothing", 1e-5};
  if ((n.name == "beta1" || n.name == "beta2") && (n.value >= 1 || n.value < 0))
    return Reason{argument, "a beta must lie in [0, 1): with 1 the bias correction 1 - beta^t is 0", 0.9};
  if (division && n.value == 0 && update && divides_a_moment(c, at))
    return Reason{"the bias correction 1 - beta^t (" + argument + ")",
                  "it is 0: a beta of 1, or no step counted", 0.1};
  if (division && n.value == 0 && !update && is_logit(c, at))
    return Reason{"the temperature (" + argument + ")", "logits are divided by it, and it is 0", 1};
  // A sum may be divided by a count of zero; each element by itself is divided by a number that was chosen.
  if (division && n.value == 0 && !update && n.tensor == kNone && is_real_number(c, at, "other") &&
      !is_reduced(c, computed_by(c, at, "self")))
    return Reason{"the divisor (" + argument + ")", "every element is divided by it, and it is 0", 1};
  return std::nullopt;
}

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
      const bool moves = moves_elements(plain_name(*c.row(reader))) || c.is_one_of(reader, {"lift_fresh"});
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

std::optional<Finding> examine_bad_setting(const Case& c, const Subject&) {
  const OpValues& values = c.values(c.op_index());
  if (!c.op() || values.outputs.empty() || all_finite(values.bad_output())) return std::nullopt;
  std::vector<std::pair<Number, Reason>> found;
  std::int32_t op = kNone;
  std::vector<std::int32_t> ops = suspects(c);
  add_readers_of_number(c, ops);
  for (const std::int32_t suspect : ops)
    for (const Number& n : numbers_of(c, suspect))
      if (const auto why = absurd(c, suspect, n);
          why && (op == kNone || op == suspect) && alone(c, suspect, n.position))
        found.emplace_back(n, *why), op = suspect;
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
