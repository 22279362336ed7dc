#include "replay/cause/precision.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "replay/blame/suspects.h"
#include "replay/case/values.h"
#include "replay/cause/twin_facts.h"
#include "replay/history/growth.h"
#include "replay/verdict/numbers.h"
#include "replay/verdict/root.h"

namespace nanquest {
namespace {

/// Measured growth, as evidence with its series; the first three columns.
void add_growth(Verdict& v, const std::vector<Growth>& growth) {
  for (std::size_t i = 0; i < growth.size() && i < 3; ++i) {
    const Growth& g = growth[i];
    char slope[32];
    std::snprintf(slope, sizeof slope, "%+.3f", g.bits_per_step);
    v.evidence.push_back(
        {"growth of " + g.what + " over the last " + std::to_string(g.series.size()) + " steps",
         number_text(g.first) + " to " + number_text(g.last) + ", " + slope + " bits a step", "", g.series});
  }
}

/// A learning rate that stood out: one step can't show its effect, only that it was there.
void add_rate_jump(Verdict& v, const RateJump& jump) {
  const std::string step = std::to_string(jump.step), rate = number_text(jump.rate),
                    before = number_text(jump.before);
  v.evidence.push_back(
      {"learning rate of step " + step, rate + ", where " + before + " was the largest before it"});
  v.explanation += " The update of step " + step + " was made with a learning rate of " + rate + ", where " +
                   before + " was the largest before it: look at its schedule first.";
}

/// What went wrong before this step comes first.
void add_loss_jump(Verdict& v, const LossJump& jump) {
  const std::string step = std::to_string(jump.step);
  v.evidence.push_back({"loss of step " + step, number_text(jump.loss) + ", where step " +
                                                    std::to_string(jump.step - 1) + " had " +
                                                    number_text(jump.before)});
  v.explanation += " The loss had jumped before, at step " + step +
                   ": look at the batch and the update of that step "
                   "first (nanquest-replay rewind leaves it out, where the file has a tape).";
}

/// Ops that can't run in `p` and ran in their own format instead, by name; "" if there are none.
std::string kept_format_text(const Case& c, Precision p) {
  std::map<std::string, int> names;
  const RunResult& run = c.whole(p);
  for (std::size_t i = 0; i < run.ops.size(); ++i)
    if (run.ops[i].kept_format) ++names[c.doc().ops[i].name];
  std::string text;
  for (const auto& [name, count] : names)
    text += (text.empty() ? "" : ", ") + name + (count > 1 ? " (" + std::to_string(count) + ")" : "");
  return text;
}

/// No initialisation gives a weight such a value.
constexpr double kEnormous = 1e6;

/// Of the weights that the culprit computes with and that hold such values, the one with the largest: (name,
/// value); nothing if there is none.
std::optional<std::pair<std::string, double>> enormous_weight(const Case& c) {
  if (!c.op()) return std::nullopt;
  std::optional<std::pair<std::string, double>> found;
  for (const Case::TensorArgument& argument : c.tensor_arguments(c.op_index())) {
    const TensorId row{argument.tensor};
    const SlotId slot = c.graph().slot(row);
    const StatsRow* stats = c.graph().stats(row);
    if (slot && stats && get(c.doc(), slot).origin == SlotOrigin::parameter &&
        stats->amax > (found ? found->second : kEnormous))
      found = std::pair(c.slot_text(slot.row()), stats->amax);
  }
  return found;
}

/// " The update of step 3 was made with a learning rate of 1e+38." of the last one, if it is known; otherwise
/// "".
std::string rate_text(const SnapshotDoc& doc) {
  const auto last = last_rate(doc);
  return last ? " The update of step " + std::to_string(last->step) + " was made with a learning rate of " +
                    number_text(last->rate) + "."
              : "";
}

/// The update that multiplied weights is advised about first: whatever format holds its consequences, the net
/// is ruined. A loss that had jumped before was not caused by that update: the batch comes first then.
void add_leap(const SnapshotDoc& doc, const Leap& leap, const std::optional<LossJump>& jump, Verdict& v) {
  const std::string step = std::to_string(leap.step);
  const auto rate = last_rate(doc);
  v.evidence.push_back({"weights of " + leap.layer + " before and after the update of step " + step,
                        number_text(leap.before) + ", " + number_text(leap.after)});
  v.explanation += " One update did it: that of step " + step + " took the weights of " + leap.layer +
                   " from " + number_text(leap.before) + " to " + number_text(leap.after) +
                   (rate ? " (learning rate " + number_text(rate->rate) + ")." : ".");
  const std::string first = jump && jump->step <= leap.step
                                ? "Look at the batch of step " + std::to_string(jump->step) +
                                      " first, and clip the norm of gradients: "
                                : "Lower the learning rate, or warm it up from a small one: ";
  v.advice = first + "the update of step " + step + " multiplied the weights of " + leap.layer +
             ", and no format mends that." + (v.advice.empty() ? "" : " Beside that: " + v.advice);
}

/// The value would have fitted its format without a growth of so many bits: nothing is wrong in this step
/// alone.
bool grew_into_it(const Case& c, const Verdict& v, double bits) {
  if (v.cause != Label::fp16_overflow || v.origin != Origin::op || !c.op()) return false;
  const OpValues& values = c.values(c.op_index());
  const at::Tensor out = values.bad_output();
  const auto limit = out.defined() ? format_max(out) : std::nullopt;
  const auto exact = evaluate_all(*c.op(), values.arguments, Precision::fp64);
  if (!limit || !exact) return false;
  double amax = 0;
  for (const at::Tensor& t : *exact)
    if (t.defined() && t.is_floating_point()) amax = std::max(amax, finite_amax(t));
  return amax > *limit && std::log2(amax / *limit) < bits;
}

/// How the loss of a run ran away to where no format of fp32's range holds it: the growth of many steps, and
/// of many bits. Null if it did not: what half precision could not hold is an overflow of that format.
const Growth* runaway_loss(const Verdict& v, const std::vector<Growth>& growth) {
  constexpr double kBits = 20;
  constexpr std::size_t kSteps = 8;
  if (v.precision.fp32 == PrecisionResult::finite) return nullptr;
  const auto found = std::find_if(growth.begin(), growth.end(), [&](const Growth& g) {
    return g.what == "loss" && g.bits >= kBits && g.series.size() >= kSteps;
  });
  return found == growth.end() ? nullptr : &*found;
}

/// No operation of this step is to blame: the claim that names one comes second.
void call_divergence(const Growth& loss, Verdict& v) {
  v.cause = Label::divergence;
  v.claims.insert(v.claims.begin(), Claim{v.cause, {words(loss)}, {}, Depth::operand});
  v.explanation = "The run diverged: " + words(loss) + ", until fp32 ends. " + v.explanation;
}

/// If the change from one batch to the next is larger than that over the whole window by this many bits, it
/// is no growth.
constexpr double kSuddenBits = 4;

}  // namespace

std::set<std::string> layers_aside(const TraceGraph& graph, OpId op) {
  const PerRow<OpRow, bool> behind = ancestors(graph, op);
  std::set<std::string> layers, read_by_them;
  for (const NamedTensor& parameter : graph.doc().parameters) {
    const std::string layer(layer_of(parameter.name));
    layers.insert(layer);
    if (parameter.slot == kNone) continue;
    for (const TraceGraph::Read& read : graph.reads(SlotId{parameter.slot}))
      if (behind[read.op]) read_by_them.insert(layer);
  }
  for (const std::string& layer : read_by_them) layers.erase(layer);
  return layers;
}

void judge_precision(const Case& c, bool not_computed, Verdict& v) {
  const auto result = [&](Precision p) {
    const TrialResult came_out = c.result(c.whole(p));
    return came_out == TrialResult::failed   ? PrecisionResult::not_run
           : came_out == TrialResult::finite ? PrecisionResult::finite
                                             : PrecisionResult::non_finite;
  };
  v.precision.fp32 = result(Precision::fp32);
  v.precision.fp64 = result(Precision::fp64);
  for (const Precision p : {Precision::fp32, Precision::fp64})
    if (const std::string kept = kept_format_text(c, p); !kept.empty())
      v.evidence.push_back(
          {"ops that can't run in " + precision_text(p) + ", run in their own format", kept});
  std::set<std::string> aside;
  if (c.op()) aside = layers_aside(c.graph(), OpId{c.op_index()});
  std::vector<Growth> growth =
      find_growth(c.doc(), [&](const std::string& layer) { return aside.count(layer) == 0; });
  // Growth where the value was made says more than the largest growth.
  if (const std::string& module = v.culprit.module; !module.empty())
    std::stable_partition(growth.begin(), growth.end(),
                          [&](const Growth& g) { return g.what.find(" of " + module) != std::string::npos; });
  add_growth(v, growth);
  const auto loss_jump = find_loss_jump(c.doc());
  if (v.origin != Origin::setting) {  // it says what came first
    if (const auto jump = find_rate_jump(c.doc())) add_rate_jump(v, *jump);
    if (loss_jump) add_loss_jump(v, *loss_jump);
  }
  auto leap = find_leap(c.doc(), [&](const std::string& layer) { return aside.count(layer) == 0; });
  // With the same weights the batch before was much smaller: growth from step to step can't explain that.
  const auto times = growth.empty() && !leap ? std::nullopt : times_health(c);
  if (times && !growth.empty() && std::log2(*times) > growth.front().bits + kSuddenBits) growth.clear();
  if (times && std::log2(*times) > kSuddenBits) leap.reset();
  const bool in_fp32 = v.precision.fp32 == PrecisionResult::finite;
  const bool cured = in_fp32 || v.precision.fp64 == PrecisionResult::finite;
  if (came_from_outside(v.origin) || not_computed) {
    v.precision.verdict = PrecisionVerdict::not_a_precision_matter;
  } else if (cured && leap) {
    v.precision.verdict = PrecisionVerdict::delayed;
    if (grew_into_it(c, v, std::log2(leap->after / leap->before))) v.origin = Origin::multi_step;
    add_leap(c.doc(), *leap, loss_jump, v);
    v.not_tested.emplace_back(
        "whether a smaller rate keeps the weights (a replay of one step can't show it)");
  } else if (cured && !growth.empty()) {
    v.precision.verdict = PrecisionVerdict::delayed;
    if (grew_into_it(c, v, growth.front().bits)) v.origin = Origin::multi_step;
    const Growth* const runaway = v.origin == Origin::multi_step ? runaway_loss(v, growth) : nullptr;
    if (runaway) {
      call_divergence(*runaway, v);
      v.advice = root_advice();
    } else {
      v.explanation += " The step is finite in " + std::string(in_fp32 ? "fp32" : "fp64") + ", but " +
                       words(growth.front()) + ": a wider format only delays it.";
      v.advice = root_advice() + (v.advice.empty() ? "" : " " + v.advice);
    }
    v.not_tested.emplace_back(
        "the root cause: why values grew over the steps before this one (a replay of one step can't show "
        "it; try a smaller learning rate or a longer warm-up from an earlier checkpoint)");
  } else if (const auto weight = cured ? enormous_weight(c) : std::nullopt) {
    v.precision.verdict = PrecisionVerdict::delayed;
    v.explanation +=
        " The step is finite in " + std::string(in_fp32 ? "fp32" : "fp64") + ", but " + weight->first +
        " itself holds values of up to " + number_text(weight->second) +
        ", which no initialisation gives: an update made it so, or the file it was loaded from." +
        rate_text(c.doc());
    v.advice = root_advice() + (v.advice.empty() ? "" : " " + v.advice);
    v.not_tested.emplace_back(
        "the root cause: what made the weight so large (a replay of one step can't show it)");
  } else if (cured) {
    v.precision.verdict = PrecisionVerdict::curable;
  } else if (v.precision.fp64 == PrecisionResult::non_finite) {
    v.precision.verdict = PrecisionVerdict::structural;
    const std::vector<std::int32_t>& births = c.whole(Precision::fp64).births;
    if (std::find(births.begin(), births.end(), c.op_index()) != births.end())
      v.explanation += " The same op fails in fp64: no number format cures it.";
  }
}

}  // namespace nanquest
