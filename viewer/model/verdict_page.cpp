#include "viewer/model/verdict_page.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "probe/snapshot/frames.h"
#include "probe/snapshot/sharing.h"
#include "probe/trace/culprit.h"
#include "probe/trace/names.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/sentences.h"
#include "viewer/model/findings.h"
#include "viewer/model/health.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_words.h"

namespace nanquest::viewer {
namespace {

/// The fields of a verdict that the recording itself has.
Verdict from_capture(const SnapshotDoc& doc) {
  Verdict v;
  const Culprit& c = doc.culprit;
  v.step = doc.step;
  if (c.op >= 0 || !c.tensor_name.empty()) v.phase = c.phase;  // meaningless without an op or a value
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
  v.culprit.stack = program_stack(doc, OpId{c.op});
  if (const std::string by = arrived_by(doc); !by.empty()) {
    v.rank = doc.rank;
    v.ranks.emplace();
    v.ranks->arrived_by = by;
  }
  return v;
}

/// The causes that could not be told apart, as one more open question; "" if there are fewer than two.
std::string undecided(const Verdict& v) {
  if (v.cause != Label::unknown) return "";
  std::string names;
  int left = 0;
  for (const Claim& claim : v.claims)
    if (claim.facts_against.empty()) names.append(left++ ? " or " : "").append(word(claim.cause));
  return left < 2 ? "" : "whether it is " + names + ": nothing that was tried tells them apart";
}

/// The verdict with the trace's counts for the output of the op to blame, side by side. `first`: no earlier
/// op made values of that kind.
Verdict counted_in_trace(Verdict v, const OpenIncident* incident, bool& first) {
  if (incident == nullptr || v.culprit.index < 0 || v.culprit.value == BadValue::silent ||
      incident->doc.culprit.op != v.culprit.index)
    return v;
  const TraceView& trace = incident->trace;
  const OpId culprit{incident->doc.culprit.op};
  const BadCounts made = trace.made(culprit);
  if (made.total() == 0) return v;
  v.culprit.count = made.total();
  v.culprit.value = from_word<BadValue>(value_name(made)).value_or(v.culprit.value);
  for (const OpId op : trace.ops()) {
    if (op == culprit) break;
    const BadCounts before = trace.made(op);
    first = first && !((made.nan > 0 && before.nan > 0) || (made.pos_inf > 0 && before.pos_inf > 0) ||
                       (made.neg_inf > 0 && before.neg_inf > 0));
  }
  return v;
}

void fill_diagnosed(VerdictPage& page, const Verdict& verdict, const OpenIncident* incident) {
  bool first = true;
  const Verdict v = counted_in_trace(verdict, incident, first);
  page.state = VerdictPage::State::diagnosed;
  page.cause = v.cause;
  page.confidence = v.confidence;
  page.precision = v.precision;
  page.fix = v.fix;
  page.claims = v.claims;
  page.evidence = v.evidence;
  page.trials = v.counterfactuals;
  page.not_tested = v.not_tested;
  if (const std::string open = undecided(v); !open.empty())
    page.not_tested.insert(page.not_tested.begin(), open);
  page.headline = headline(v, first);
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) page.facts.push_back({label, text});
  };
  add("What", what(v));
  add("Where", where(v));
  add("Why", v.explanation.empty() ? std::string(meaning(v.cause)) : v.explanation);
  if (v.on_record.empty()) page.facts.push_back(fix_fact(v));
  add("Advice", advice_text(v));
  add("Blame", blame_text(v.blame));
  if (v.root) add("Root", root_text(*v.root));
  if (v.ranks) add("Ranks", v.ranks->text);
  page.facts.push_back({"Confidence", confidence_text(v), Sign::none, true});
  add("Precision", precision_text(v));
  add("Proven by", reproduction_text(v.reproduction));
  add("Samples", samples_text(v));
}

void fill_not_replayed(VerdictPage& page, const OpenIncident& incident, const std::string& verdict_error) {
  page.state = VerdictPage::State::not_replayed;
  const Verdict v = from_capture(incident.doc);
  page.headline = headline(v);
  const bool known = v.phase.has_value();
  page.facts = {{"What", known ? what(v) : "the recording doesn't say which op made the first bad value"}};
  if (known) page.facts.push_back({"Where", where(v)});
  page.facts.push_back({"Why", verdict_error.empty() ? "not replayed yet" : verdict_error});
  page.facts.push_back({"Advice", "replay the step: it tests causes and tries fixes on this very step"});
  page.facts.push_back({"Confidence", known ? "what and where are on record; the cause is not diagnosed"
                                            : "nothing is diagnosed"});
  page.facts.push_back({"Proven by", incident.doc.basis == "survivors"
                                         ? "the tensors that were alive at the gate"
                                         : "every output of the step was checked when it was recorded"});
}

void fill_nothing_found(VerdictPage& page, const Verdict& v) {
  const bool all = !v.unseen.any();
  page.state = all ? VerdictPage::State::harmless : VerdictPage::State::unseen;
  const std::string step = "Step " + std::to_string(v.step);
  page.headline = all ? step + " holds nothing harmful"
                      : "Not everything of step " + std::to_string(v.step) + " could be looked at";
  page.not_tested = v.not_tested;
  if (!v.on_record.empty()) page.facts = {{"Why", on_record_text(v)}};
  if (!all) page.facts = {{"What", nothing_text(v)}, {"Advice", unseen_advice()}};
  page.facts.push_back({"Proven by", reproduction_text(v.reproduction)});
}

/// How the file was changed after its run wrote it. A verdict made from it names that too.
void add_sharing(VerdictPage& page, const SnapshotDoc& doc) {
  for (const auto& [what, text] : sharing_lines(sharing_of(doc))) {
    std::string label = what;
    label[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(label[0])));
    page.facts.push_back({label, text, Sign::caution});
  }
}

const std::string kNothingToShow = "no ops and tensors can be shown: ";

/// What is known if neither verdict nor snapshot can be shown.
void fill_nothing_open(VerdictPage& page, const Session& session) {
  const IncidentEntry* entry = session.entry();
  if (session.folder() != nullptr) {
    page.headline = session.folder()->headline();
  } else if (session.diff() != nullptr) {
    page.headline = session.diff()->headline();
  } else if (entry == nullptr) {
    const auto& manifest = session.manifest();
    page.headline = session.incidents().empty()
                        ? steps_text(session.series_words(), manifest ? manifest->world_size : 1)
                        : "No incident is open";
    if (manifest && !manifest->findings.empty())
      page.headline += "; " + counted(manifest->findings.size(), "finding");
    page.facts = finding_facts(session);
    for (Fact& fact : health_facts(session)) page.facts.push_back(std::move(fact));
  } else if (entry->snapshot == Snapshot::here) {
    page.headline = session.incident_error();
  } else {
    page.headline =
        entry->known_text() + (entry->snapshot == Snapshot::lost ? "; its incident file is not here"
                                                                 : "; no snapshot of it was written");
    page.facts.push_back({"Snapshot", session.incident_error(), Sign::caution});
    if (!session.verdict_error().empty())
      page.facts.push_back({"Verdict", session.verdict_error(), Sign::caution});
  }
}

}  // namespace

VerdictPage verdict_page(const Session& session) {
  VerdictPage page;
  const OpenIncident* incident = session.incident();
  const std::optional<Verdict>& verdict = session.verdict();
  if (verdict) {
    if (verdict->found) {
      fill_diagnosed(page, *verdict, incident);
      page.series = series_of(session, *verdict);
    } else {
      fill_nothing_found(page, *verdict);
    }
    if (incident == nullptr)
      page.facts.push_back({"Snapshot", kNothingToShow + session.incident_error(), Sign::caution});
  } else if (incident != nullptr) {
    page.command = session.replay_command();
    fill_not_replayed(page, *incident, session.verdict_error());
  } else {
    fill_nothing_open(page, session);
  }
  if (incident != nullptr) add_sharing(page, incident->doc);
  if (incident != nullptr && !incident->replay_error.empty())
    page.facts.push_back({"Replay", incident->replay_error, Sign::caution});
  if (const Source& source = session.source(); !source.why.empty())
    page.facts.push_back({"Source", source.why});
  return page;
}

std::string nothing_to_show(const Session& session) {
  std::string headline = verdict_page(session).headline;
  if (!session.verdict() || session.incident_error().empty()) return headline;
  return headline + "; " + kNothingToShow + session.incident_error();
}

PanelPage nothing_page(const Session& session) {
  return {nothing_to_show(session), {}, health_facts(session), {}};
}

}  // namespace nanquest::viewer
