#include "replay/verdict/confidence.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace nanquest {
namespace {

/// Of tests/faultbench/calibrate.py.
struct Weights {
  double base, deep, agrees, helps, verified, same_event, in_step;
};
constexpr Weights kWeights{-2.91, 2.02, 1.50, 0.99, 1.16, 1.00, 1.95};

/// Of the made spikes whose verdict had this label, those that had it rightly: tests/spikebench/run.py on the
/// seed 5. docs/evidence.md has those of seeds that were not looked at.
struct MadeSpikes {
  Label cause;
  int right, named;
};
constexpr MadeSpikes kMadeSpikes[] = {{Label::spike_data, 9, 9},
                                      {Label::spike_state, 10, 10},
                                      {Label::divergence, 6, 6},
                                      {Label::precision, 5, 5}};

const MadeSpikes* made_spikes(Label cause) {
  const auto found = std::find_if(std::begin(kMadeSpikes), std::end(kMadeSpikes),
                                  [&](const MadeSpikes& made) { return made.cause == cause; });
  return found == std::end(kMadeSpikes) ? nullptr : found;
}

const Claim* claim_of(const Verdict& v) {
  const auto found = std::find_if(v.claims.begin(), v.claims.end(),
                                  [&](const Claim& c) { return c.cause == meant_cause(v); });
  return found == v.claims.end() ? nullptr : &*found;
}

/// Where a second run gives something else, that is what the cause says.
bool differs_by_nature(Label cause) {
  return cause == Label::uninitialized || cause == Label::race || cause == Label::hardware;
}

double same_event(const Verdict& v) {
  if (differs_by_nature(meant_cause(v))) return 1;
  const Agreement agreement = v.reproduction.agreement();
  return agreement == Agreement::bit_for_bit ? 1 : agreement == Agreement::within_bounds ? 0.5 : 0;
}

bool is_data_or_state(Origin origin) {
  return origin == Origin::input || origin == Origin::parameter || origin == Origin::buffer ||
         origin == Origin::optimizer_state;
}

/// Whether the step itself shows what made the value. A bad value that came with the batch or the state has a
/// history that is not on record.
double in_step(const Verdict& v, const Claim* claim) {
  const Label cause = meant_cause(v);
  if (cause == Label::uninitialized && is_data_or_state(v.origin)) return 0;
  if (cause != Label::bad_data && cause != Label::bad_state) return 1;
  return claim && claim->depth && *claim->depth >= Depth::source ? 1 : 0;
}

/// Some change of the search for fixes had a control; those of exchanged samples follow them.
bool has_control(const Verdict& v) {
  for (std::size_t i = 0; i < v.counterfactuals.size(); ++i)
    if (v.counterfactuals[i].kind == ChangeKind::placebo &&
        (i == 0 || v.counterfactuals[i - 1].kind != ChangeKind::data))
      return true;
  return false;
}

bool finite_in_some_format(const Verdict& v) {
  return v.precision.fp32 == PrecisionResult::finite || v.precision.fp64 == PrecisionResult::finite;
}

/// The changes that the cause asks for could not be run (an operation without a kernel for them): whether
/// they help is not known, and a wider format that does not help says nothing of them.
bool could_not_be_tried(const Verdict& v) {
  const auto asked = [](const Counterfactual& c) {
    return c.kind != ChangeKind::placebo && c.kind != ChangeKind::data && c.kind != ChangeKind::precision;
  };
  bool failed = false;
  for (const Counterfactual& c : v.counterfactuals) {
    if (!asked(c)) continue;
    if (c.result != TrialResult::failed) return false;
    failed = true;
  }
  return failed;
}

std::string percent(double share) {
  return std::to_string(std::lround(share * 100)) + " %";
}

std::string joined(const char* lead, const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? lead : ", ") + part;
  return text;
}

/// The change to try in the program; "" if all that were tried do not help.
std::string experiment(const Verdict& v) {
  if (v.fix) return v.fix->change;
  bool tried = false;
  for (const Counterfactual& c : v.counterfactuals) {
    if (c.kind == ChangeKind::placebo) continue;
    if (c.result != TrialResult::non_finite) return c.change;
    tried = true;
  }
  return tried ? "" : (v.culprit.op.empty() ? "the step" : v.culprit.op) + " computed in fp64";
}

void leave_open(Verdict& v) {
  const Claim* const first = claim_of(v);
  const auto second =
      std::find_if(v.claims.begin(), v.claims.end(), [&](const Claim& c) { return c.cause != v.cause; });
  const std::string name = std::string(word(v.cause)) + " (" + std::string(meaning(v.cause)) + ")";
  const std::string other = second == v.claims.end() ? "a cause that nanquest does not know"
                                                     : std::string(word(second->cause)) + " (" +
                                                           std::string(meaning(second->cause)) + ")";
  const std::string against =
      first && !first->facts_against.empty() ? "; against it: " + first->facts_against.front() : "";
  v.likely = Likely{v.cause, v.confidence};
  const std::string ranked =
      "ost likely is " + name + ", " + percent(v.confidence) + against + "; otherwise " + other + ".";
  std::string advice;
  if (is_data_or_state(v.origin)) {
    // What is known of the tensor comes first. Replacing its bad values tells no cause from another.
    v.explanation += " The evidence does not decide why: m" + ranked;
  } else {
    v.explanation = "The evidence does not decide. M" + ranked + " " + v.explanation;
    const std::string change = experiment(v);
    advice = change.empty()
                 ? "No change that was tried makes this step finite: look at the steps before it (nanquest "
                   "rehearse FILE -- COMMAND tries other rates, clipping and batches from the start). "
                 : "To tell them apart, make one change in the program and run it again: \"" + change +
                       "\". If it then stays finite, " + std::string(word(v.cause)) + " is right. ";
  }
  v.advice = advice + v.advice;
  if (v.fix) v.fix->advice = advice + v.fix->advice;
  v.cause = Label::unknown;
  v.confidence = 0;
}

}  // namespace

Label meant_cause(const Verdict& verdict) {
  return verdict.likely ? verdict.likely->cause : verdict.cause;
}

Shown shown_by(const Verdict& v) {
  Shown s;
  const Claim* const claim = claim_of(v);
  if (claim && claim->depth) s.deep = *claim->depth >= Depth::operand;
  s.agrees = !claim || claim->facts_against.empty();
  const bool verified = v.fix && v.fix->verified;
  const auto tried = [&](const auto& wanted) {
    // Samples are exchanged whatever the cause is.
    return std::any_of(v.counterfactuals.begin(), v.counterfactuals.end(), [&](const Counterfactual& c) {
      return c.kind != ChangeKind::placebo && c.kind != ChangeKind::data && c.result != TrialResult::failed &&
             wanted(c);
    });
  };
  const bool any = !could_not_be_tried(v) && tried([](const Counterfactual&) { return true; });
  const bool helps =
      tried([](const Counterfactual& c) { return c.result == TrialResult::finite && c.not_a_fix.empty(); });
  if (verified || helps || (finite_in_some_format(v) && s.agrees == 1))
    s.helps = 1;
  else if (any)
    s.helps = 0;
  if (verified)
    s.verified = 1;
  else if (any && (s.helps < 1 || has_control(v)))
    s.verified = 0;
  s.same_event = same_event(v);
  s.in_step = in_step(v, claim);
  if (s.in_step < 1) {  // whoever made it: the value is in the file, and the step is finite without it
    s.helps = s.verified = kNotSeen;
    s.same_event = 1;
  }
  return s;
}

double confidence_of(const Verdict& v) {
  if (v.cause == Label::unknown) return 0;
  const Shown s = shown_by(v);
  const Weights& w = kWeights;
  const double sum = w.base + w.deep * s.deep + w.agrees * s.agrees + w.helps * s.helps +
                     w.verified * s.verified + w.same_event * s.same_event + w.in_step * (s.in_step - 1);
  return 1 / (1 + std::exp(-sum));
}

double spike_confidence(Label cause) {
  const MadeSpikes* const made = made_spikes(cause);
  return made ? (made->right + 1.0) / (made->named + 2.0) : 0;
}

std::string confidence_text(const Verdict& v) {
  if (v.likely)
    return percent(v.likely->confidence) + " for " + std::string(word(v.likely->cause)) +
           ": too little to name it";
  std::string text = percent(v.confidence);
  const MadeSpikes* const made = v.on_record.empty() ? nullptr : made_spikes(v.cause);
  if (made && std::abs(v.confidence - spike_confidence(v.cause)) <= 0.0051)
    return text + " (" + std::to_string(made->right) + " of " + std::to_string(made->named) +
           " made spikes with this label were named right)";
  // A file holds hundredths.
  if (v.cause == Label::unknown || std::abs(v.confidence - confidence_of(v)) > 0.0051) return text;
  const Shown s = shown_by(v);
  std::vector<std::string> pro, con;
  if (s.in_step < 1)
    con.emplace_back("what wrote the value is not on record, and the step is finite without it whoever did");
  else if (s.verified == 1)
    pro.emplace_back("the remedy was tried with a control");
  else if (s.helps == 1)
    pro.emplace_back("a change that it asks for helps");
  else
    con.emplace_back(s.helps == 0            ? "no change that it asks for helps"
                     : could_not_be_tried(v) ? "the change that it asks for can't be run here"
                                             : "no change was tried");
  if (s.helps == 1 && s.verified < 1) con.emplace_back("no fix was verified");
  if (s.deep == 1) pro.emplace_back("the proof says where the operands come from");
  if (s.deep == 0) con.emplace_back("the proof covers this operation alone");
  if (s.agrees == 0) con.push_back(claim_of(v)->facts_against.front());
  if (s.same_event < 1)
    con.emplace_back(s.same_event > 0 ? "the step came back within bounds only"
                                      : "the step did not come back bit for bit");
  return text + joined(": ", pro) + joined(pro.empty() ? ": but " : "; but ", con);
}

void settle_confidence(Verdict& v) {
  v.confidence = confidence_of(v);
  if (v.cause != Label::unknown && v.confidence < kLeastConfidence) leave_open(v);
}

}  // namespace nanquest
