#include "replay/cause/arbiter.h"

#include <utility>

namespace nanquest {
namespace {

/// What the step says of one claim.
struct Heard {
  Claim claim;
  bool refuted = false;
};

void against(Heard& heard, std::string fact) {
  heard.claim.facts_against.push_back(std::move(fact));
  heard.refuted = true;
}

Heard hear(const Case& c, const Finding& f, bool alone) {
  Heard heard{{f.label, {}, {}}};
  for (const Evidence& e : f.evidence)
    heard.claim.facts_for.push_back(e.name + ": " + e.value +
                                    (e.limit.empty() ? "" : " (limit " + e.limit + ")"));
  for (const Change& change : f.unmoved)
    if (c.has_time() && run_change(c, change) == TrialResult::finite)
      against(heard, "\"" + change.text + "\" helps, which it should not if this were the cause");
  if (alone || f.wanted.empty()) return heard;
  bool helped = false, ran = false;
  for (const Change& change : f.wanted) {
    if (!c.has_time()) break;
    const TrialResult result = run_change(c, change);
    ran = ran || result != TrialResult::failed;
    helped = helped || result == TrialResult::finite;
    if (result == TrialResult::finite)
      heard.claim.facts_for.push_back("\"" + change.text + "\" helps, as it should");
  }
  if (ran && !helped) against(heard, "\"" + f.wanted.front().text + "\" does not help, which it should");
  return heard;
}

}  // namespace

Decision decide(const Case& c, std::vector<Finding> found) {
  Decision decision;
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < found.size(); ++i) {
    Heard heard = hear(c, found[i], found.size() == 1);
    if (!heard.refuted) left.push_back(i);
    decision.claims.insert(heard.refuted ? decision.claims.end() : decision.claims.begin(),
                           std::move(heard.claim));
  }
  if (left.size() == 1) {
    decision.finding = std::move(found[left.front()]);
    return decision;
  }
  decision.finding = unknown_finding(c);
  std::string& text = decision.finding.explanation;
  for (std::size_t i = 0; i < left.size(); ++i)
    text.append(i                  ? " and "
                : left.size() == 2 ? " Two causes claim it: "
                                   : " Several causes claim it: ")
        .append(word(found[left[i]].label));
  if (!left.empty()) text += "; nothing that was tried tells them apart.";
  if (left.empty() && !found.empty()) text += " What was claimed was refuted by trying it.";
  return decision;
}

}  // namespace nanquest
