#include "viewer/model/page.h"

#include <cmath>

#include "probe/snapshot/frames.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

std::string counted_value(const std::string& value, std::uint64_t count) {
  return (count == 0 ? "" : grouped(count) + " ") + value_words(value, count == 1);
}

/// The fields that both the capture and the replay know.
struct Finding {
  std::int64_t step = 0, op_index = -1;
  std::string op, module, node, phase, origin, tensor, value;
  std::uint64_t count = 0;
  std::vector<std::int64_t> first;
  std::string frame;
};

Finding from_capture(const SnapshotDoc& doc) {
  Finding f;
  const Culprit& c = doc.culprit;
  f.step = doc.step;
  f.phase = phase_name(c.phase);
  f.origin = c.origin;
  f.tensor = c.tensor_name;
  f.value = c.value;
  f.count = c.count;
  f.first = c.first;
  if (c.op < 0 || static_cast<std::size_t>(c.op) >= doc.ops.size()) return f;
  const OpRow& op = doc.ops[static_cast<std::size_t>(c.op)];
  f.op_index = c.op;
  f.op = op.name;
  f.node = op.node;
  if (op.module != kNone) f.module = doc.modules[static_cast<std::size_t>(op.module)].path;
  if (op.stack != kNone && !doc.stacks[static_cast<std::size_t>(op.stack)].empty())
    f.frame = program_frame(doc.stacks[static_cast<std::size_t>(op.stack)]);
  return f;
}

Finding from_verdict(const Verdict& v) {
  return {v.step,   v.index,  v.op,    v.module, v.node,  v.phase,
          v.origin, v.tensor, v.value, v.count,  v.first, program_frame(v.stack)};
}

std::string headline(const Finding& f) {
  const std::string step = " at step " + std::to_string(f.step);
  if (f.op.empty() && f.tensor.empty()) return "A non-finite step" + step;
  if (f.op.empty()) return f.tensor + " was already bad" + step;
  std::string text = f.op + (f.module.empty() ? "" : " in " + f.module);
  if (f.origin != "op" && !f.tensor.empty()) return text + " read the bad " + f.tensor + step;
  return text + (f.value == "silent" ? " lost values silently" : " made the first " + value_words(f.value)) +
         step;
}

std::string what(const Finding& f) {
  std::string text = counted_value(f.value, f.count);
  if (f.origin != "op" && !f.tensor.empty())
    text += " in " + f.tensor + ", there before the step began";
  else if (!f.op.empty())
    text += " in the output of " + f.op;
  if (!f.first.empty()) text += "; the first at index " + shape_text(f.first);
  return text;
}

std::string where(const Finding& f) {
  std::string text = f.phase;
  if (!f.module.empty()) text += ", module " + f.module;
  if (!f.node.empty()) text += ", inside " + f.node;
  if (f.op_index >= 0) text += ", op " + std::to_string(f.op_index);
  if (!f.frame.empty()) text += "\n" + f.frame;
  return text;
}

std::string reproduction(const Verdict& v) {
  const std::string things =
      v.basis == "survivors" ? "tensors that were alive at the gate" : "written outputs";
  const auto compared = static_cast<std::uint64_t>(std::max<std::int64_t>(v.outputs_compared, 0));
  std::string text;
  if (v.bit_exact)
    text = "replayed bit for bit: all " + grouped(compared) + " " + things + " equal";
  else if (compared == 0)
    text = "not reproduced: no output could be compared";
  else {
    text = grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(v.mismatched, 0))) + " of " +
           grouped(compared) + " " + things + " differ in the replay";
    if (v.first_mismatch) text += ", first at op " + std::to_string(*v.first_mismatch);
  }
  if (v.opaque_ops > 0)
    text += "; " + counted(static_cast<std::uint64_t>(v.opaque_ops), "op") + " could not be run again";
  return text;
}

std::string proof(const Verdict& v) {
  std::string text = reproduction(v);
  if (v.fix && v.fix->verified) {
    text += "; with the fix this step is finite";
    if (v.fix->placebo_failed) text += ", an irrelevant change does not help";
    if (v.fix->minimal) text += ", nothing smaller does";
  }
  return text;
}

std::string sureness(const Verdict& v) {
  std::string text = std::to_string(static_cast<int>(std::lround(v.confidence * 100))) + " %";
  const std::string& p = v.precision;
  if (p == "curable")
    text += "; more precision cures it";
  else if (p == "delayed")
    text += "; more precision only delays it: the values keep growing";
  else if (p == "structural")
    text += "; more precision does not help, the operation itself fails";
  else if (p == "not_a_precision_matter")
    text += "; precision has nothing to do with it";
  const auto word = [](const std::string& r) { return r == "non_finite" ? std::string("non-finite") : r; };
  if (v.fp32 == "finite" || v.fp32 == "non_finite") text += "; fp32 replay " + word(v.fp32);
  if (v.fp64 == "finite" || v.fp64 == "non_finite") text += ", fp64 replay " + word(v.fp64);
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
  page.cause_in_words = cause_words(v.cause);
  page.confidence = v.confidence;
  page.bit_exact = v.bit_exact;
  page.fix_verified = v.fix && v.fix->verified;
  page.fp32 = v.fp32;
  page.fp64 = v.fp64;
  page.evidence = v.evidence;
  page.not_tested = v.not_tested;
  const Finding f = from_verdict(v);
  page.headline = headline(f);
  page.facts = {{"What", what(f)}, {"Where", where(f)}};
  page.facts.push_back({"Why", v.explanation.empty() ? page.cause_in_words : v.explanation});
  std::string advice = v.fix ? (v.fix->advice.empty() ? v.fix->change : v.fix->advice) : v.advice;
  if (advice.empty())
    advice = "no change was found that helps";
  else if (!page.fix_verified)
    advice += " (not verified on this step)";
  page.facts.push_back({"What to do", advice});
  page.facts.push_back({"How sure", sureness(v)});
  page.facts.push_back({"Proven by", proof(v)});
  if (const std::string samples = samples_text(v); !samples.empty())
    page.facts.push_back({"Samples", samples});
  for (const VerdictTrial& t : v.trials)
    page.trials.push_back({t.change, t.kind, t.result == "non_finite" ? "still non-finite" : t.result,
                           t.result == "finite", t.kind == "placebo"});
}

void fill_not_replayed(VerdictPage& page, const OpenIncident& incident) {
  page.state = VerdictPage::State::not_replayed;
  const Finding f = from_capture(incident.doc);
  page.headline = headline(f);
  page.facts = {{"What", what(f)}, {"Where", where(f)}};
  page.facts.push_back({"Why", incident.verdict_error.empty() ? "not replayed yet" : incident.verdict_error});
  page.facts.push_back({"What to do", "replay the step: it tests causes and tries fixes on this very step"});
  page.facts.push_back({"How sure", "what and where are on record; the cause is not diagnosed"});
  page.facts.push_back({"Proven by", incident.doc.basis == "survivors"
                                         ? "the tensors that were alive at the gate"
                                         : "every output of the step was checked when it was recorded"});
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
  page.state = VerdictPage::State::harmless;
  page.headline = "Step " + std::to_string(incident->doc.step) + " holds nothing harmful";
  page.bit_exact = incident->verdict->bit_exact;
  page.facts = {{"Proven by", reproduction(*incident->verdict)}};
  page.command.clear();
  return page;
}

}  // namespace nanquest::viewer
