#include "viewer/model/verdict_page.h"

#include <cmath>

#include "probe/snapshot/frames.h"
#include "replay/verdict/sentences.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

/// The fields of a verdict that the recording itself knows.
Verdict from_capture(const SnapshotDoc& doc) {
  Verdict v;
  const Culprit& c = doc.culprit;
  v.step = doc.step;
  v.phase = c.phase;
  v.origin = from_word<Origin>(c.origin).value_or(Origin::op);
  v.culprit.tensor = c.tensor_name;
  v.culprit.value = from_word<BadValue>(c.value).value_or(BadValue::none);
  v.culprit.count = c.count;
  v.culprit.first = c.first;
  if (c.op < 0 || static_cast<std::size_t>(c.op) >= doc.ops.size()) return v;
  const OpRow& op = doc.ops[static_cast<std::size_t>(c.op)];
  v.culprit.index = c.op;
  v.culprit.op = op.name;
  v.culprit.node = op.node;
  if (op.module != kNone) v.culprit.module = doc.modules[static_cast<std::size_t>(op.module)].path;
  if (op.stack != kNone) v.culprit.stack = doc.stacks[static_cast<std::size_t>(op.stack)];
  return v;
}

std::string headline(const Verdict& v) {
  const CulpritInfo& c = v.culprit;
  const std::string step = " at step " + std::to_string(v.step);
  if (c.op.empty() && c.tensor.empty()) return "A non-finite step" + step;
  if (c.op.empty()) return c.tensor + " was already bad" + step;
  std::string text = c.op + (c.module.empty() ? "" : " in " + c.module);
  if (v.origin != Origin::op && !c.tensor.empty()) return text + " read the bad " + c.tensor + step;
  if (c.value == BadValue::silent) return text + " lost values silently" + step;
  return text.append(" made the first ").append(spoken(c.value)) + step;
}

std::string what(const Verdict& v) {
  const CulpritInfo& c = v.culprit;
  std::string text = (c.count == 0 ? "" : grouped(c.count) + " ") + spoken(c.value, c.count);
  if (v.origin != Origin::op && !c.tensor.empty())
    text += " in " + c.tensor + ", there before the step began";
  else if (!c.op.empty())
    text += " in the output of " + c.op;
  if (!c.first.empty()) text += "; the first at index " + shape_text(c.first);
  return text;
}

std::string where(const Verdict& v) {
  const CulpritInfo& c = v.culprit;
  std::string text(v.phase ? word(*v.phase) : "");
  if (!c.module.empty()) text += ", module " + c.module;
  if (!c.node.empty()) text += ", inside " + c.node;
  if (c.index >= 0) text += ", op " + std::to_string(c.index);
  if (const std::string frame = program_frame(c.stack); !frame.empty()) text += "\n" + frame;
  return text;
}

std::string reproduction(const Reproduction& r) {
  const std::string things =
      r.basis == Basis::survivors ? "tensors that were alive at the gate" : "written outputs";
  const auto compared = static_cast<std::uint64_t>(std::max<std::int64_t>(r.outputs_compared, 0));
  std::string text;
  if (r.bit_exact)
    text = "replayed bit for bit: all " + grouped(compared) + " " + things + " equal";
  else if (compared == 0)
    text = "not reproduced: no output could be compared";
  else {
    text = grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(r.mismatched, 0))) + " of " +
           grouped(compared) + " " + things + " differ in the replay";
    if (r.first_mismatch) text += ", first at op " + std::to_string(*r.first_mismatch);
  }
  if (r.opaque_ops > 0)
    text += "; " + counted(static_cast<std::uint64_t>(r.opaque_ops), "op") + " could not be run again";
  return text;
}

std::string proof(const Verdict& v) {
  std::string text = reproduction(v.reproduction);
  if (v.fix && v.fix->verified) text += "; " + fix_text(*v.fix);
  return text;
}

std::string sureness(const Verdict& v) {
  std::string text = std::to_string(static_cast<int>(std::lround(v.confidence * 100))) + " %";
  switch (v.precision.verdict.value_or(PrecisionVerdict::not_a_precision_matter)) {
    case PrecisionVerdict::curable:
      text += "; more precision cures it";
      break;
    case PrecisionVerdict::delayed:
      text += "; more precision only delays it: the values keep growing";
      break;
    case PrecisionVerdict::structural:
      text += "; more precision does not help, the operation itself fails";
      break;
    case PrecisionVerdict::not_a_precision_matter:
      if (v.precision.verdict) text += "; precision has nothing to do with it";
  }
  const auto replay = [&](const char* name, PrecisionResult result) {
    if (result != PrecisionResult::not_run)
      text.append(name).append(result == PrecisionResult::finite ? "finite" : "non-finite");
  };
  replay("; fp32 replay ", v.precision.fp32);
  replay(", fp64 replay ", v.precision.fp64);
  return text;
}

std::string samples_text(const Verdict& v) {
  if (v.poison.empty() && v.poison_ids.empty()) return "";
  std::string text;
  for (std::size_t i = 0; i < v.poison.size() && i < 8; ++i) {
    text += (i ? ", " : "") + std::to_string(v.poison[i]);
    if (i < v.poison_ids.size()) text += " (" + v.poison_ids[i] + ")";
  }
  if (v.poison.size() > 8) text += ", …";
  if (v.batch > 0) text += " of a batch of " + std::to_string(v.batch);
  return text + "; without " + (v.poison.size() == 1 ? "it" : "them") + " the step is finite";
}

void fill_diagnosed(VerdictPage& page, const Verdict& v) {
  page.state = VerdictPage::State::diagnosed;
  page.cause = v.cause;
  page.confidence = v.confidence;
  page.bit_exact = v.reproduction.bit_exact;
  page.fix_verified = v.fix && v.fix->verified;
  page.precision = v.precision;
  page.evidence = v.evidence;
  page.trials = v.counterfactuals;
  page.not_tested = v.not_tested;
  page.headline = headline(v);
  page.facts = {{"What", what(v)}, {"Where", where(v)}};
  page.facts.push_back({"Why", v.explanation.empty() ? std::string(meaning(v.cause)) : v.explanation});
  std::string advice = v.fix ? (v.fix->advice.empty() ? v.fix->change : v.fix->advice) : v.advice;
  if (advice.empty())
    advice = "no change was found that helps";
  else if (!page.fix_verified)
    advice += " (not verified on this step)";
  page.facts.push_back({"What to do", advice});
  if (const std::string blame = blame_text(v.blame); !blame.empty()) page.facts.push_back({"Blame", blame});
  for (const Claim& c : v.claims)
    if (c.cause != v.cause || !c.facts_against.empty()) page.facts.push_back({"Claimed too", claim_text(c)});
  page.facts.push_back({"How sure", sureness(v)});
  page.facts.push_back({"Proven by", proof(v)});
  if (const std::string samples = samples_text(v); !samples.empty())
    page.facts.push_back({"Samples", samples});
}

void fill_not_replayed(VerdictPage& page, const OpenIncident& incident) {
  page.state = VerdictPage::State::not_replayed;
  const Verdict v = from_capture(incident.doc);
  page.headline = headline(v);
  page.facts = {{"What", what(v)}, {"Where", where(v)}};
  page.facts.push_back({"Why", incident.verdict_error.empty() ? "not replayed yet" : incident.verdict_error});
  page.facts.push_back({"What to do", "replay the step: it tests causes and tries fixes on this very step"});
  page.facts.push_back({"How sure", "what and where are on record; the cause is not diagnosed"});
  page.facts.push_back({"Proven by", incident.doc.basis == "survivors"
                                         ? "the tensors that were alive at the gate"
                                         : "every output of the step was checked when it was recorded"});
}

void fill_nothing_found(VerdictPage& page, const OpenIncident& incident) {
  const Verdict& v = *incident.verdict;
  const bool all = !v.unseen.any();
  page.state = all ? VerdictPage::State::harmless : VerdictPage::State::unseen;
  const std::string step = "Step " + std::to_string(incident.doc.step);
  page.headline = all ? step + " holds nothing harmful"
                      : "Not everything of step " + std::to_string(v.step) + " could be looked at";
  page.bit_exact = v.reproduction.bit_exact;
  page.not_tested = v.not_tested;
  if (!all) page.facts = {{"What", nothing_text(v)}, {"What to do", unseen_advice()}};
  page.facts.push_back({"Proven by", reproduction(v.reproduction)});
}

}  // namespace

VerdictPage verdict_page(const Session& session) {
  VerdictPage page;
  const OpenIncident* incident = session.incident();
  if (incident == nullptr) {
    page.headline = !session.incident_error().empty() ? session.incident_error()
                    : session.incidents().empty() ? "No incident: every step of this run was finite so far"
                                                  : "No incident is open";
    return page;
  }
  page.command = session.replay_command();
  if (!incident->verdict) {
    fill_not_replayed(page, *incident);
    return page;
  }
  if (incident->verdict->found) {
    fill_diagnosed(page, *incident->verdict);
    page.command.clear();
    return page;
  }
  fill_nothing_found(page, *incident);
  page.command.clear();
  return page;
}

}  // namespace nanquest::viewer
