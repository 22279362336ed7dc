#include <sstream>

#include "replay/verdict/sentences.h"
#include "viewer/model/findings.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

Result<std::string> verdict_csv(Session& session) {
  const VerdictPage page = verdict_page(session);
  std::ostringstream out;
  record(out, std::string("kind"), std::string("name"), std::string("value"), std::string("limit"));
  const std::string none;
  record(out, std::string("headline"), none, page.headline, none);
  record(out, std::string("cause"), none, std::string(page.cause ? word(*page.cause) : ""), none);
  record(out, std::string("confidence"), none, exact_number(page.confidence), none);
  for (const Fact& f : page.facts)
    if (f.label != kFound) record(out, std::string("fact"), f.label, one_line(f.text), none);
  if (session.manifest())
    for (const ManifestFinding& f : session.manifest()->findings)
      record(out, "finding:" + f.kind, f.label, one_line(finding_text(f, session.manifest()->world_size > 1)),
             none);
  if (page.fix)
    record(out, std::string(page.fix_verified() ? "fix:verified" : "fix:not_verified"), page.fix->change,
           page.fix->advice, none);
  for (const Claim& c : page.claims) {
    const std::string cause(word(c.cause));
    if (c.facts_for.empty() && c.facts_against.empty()) record(out, std::string("claim"), cause, none, none);
    for (const std::string& fact : c.facts_for)
      record(out, std::string("claim:for"), cause, one_line(fact), none);
    for (const std::string& fact : c.facts_against)
      record(out, std::string("claim:against"), cause, one_line(fact), none);
  }
  for (const Evidence& e : page.evidence) record(out, std::string("evidence"), e.name, e.value, e.limit);
  for (const Counterfactual& t : page.trials)
    record(out, "trial:" + std::string(word(t.kind)), t.change, trial_text(t), none);
  for (const std::string& t : page.not_tested) record(out, std::string("not_tested"), none, t, none);
  return out.str();
}

}  // namespace nanquest::viewer
