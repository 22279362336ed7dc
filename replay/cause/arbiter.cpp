#include "replay/cause/arbiter.h"

#include <algorithm>
#include <utility>

namespace nanquest {
namespace {

/// One claim, and what the step shows about it.
struct Heard {
  Finding finding;
  Claim claim;
  bool refuted = false, helped = false;

  void against(std::string fact) {
    claim.facts_against.push_back(std::move(fact));
    refuted = true;
  }
};

std::string helps(const std::string& change, const char* how) {
  return "\"" + change + "\" " + how;
}

Heard hear(const Case& c, Finding found) {
  Heard heard{std::move(found), {}};
  heard.claim.cause = heard.finding.label;
  heard.claim.depth = heard.finding.depth;
  for (const Evidence& e : heard.finding.evidence)
    heard.claim.facts_for.push_back(e.name + ": " + e.value +
                                    (e.limit.empty() ? "" : " (limit " + e.limit + ")"));
  if (!heard.finding.doubt.empty()) {
    heard.claim.depth = Depth::size;
    heard.claim.facts_against.push_back(heard.finding.doubt);
  }
  for (const Change& change : heard.finding.unmoved)
    if (c.has_time() && run_change(c, change) == TrialResult::finite)
      heard.against(helps(change.text, "helps, which it should not if this were the cause"));
  return heard;
}

bool speaks_of_arithmetic(const Finding& f) {
  return f.depth < Depth::source && !f.not_computed;
}

class Hearing {
 public:
  Hearing(const Case& c, std::vector<Finding> found) : c_(c) {
    std::stable_sort(found.begin(), found.end(),
                     [](const Finding& a, const Finding& b) { return a.depth > b.depth; });
    for (Finding& f : found) heard_.push_back(hear(c, std::move(f)));
  }

  Decision decide() {
    if (standing().size() > 1) by_format();
    std::vector<Heard*> left = standing();
    if (left.size() > 1) left = by_changes(left);
    Decision decision;
    const bool one = left.size() == 1;
    decision.finding = one ? left.front()->finding : undecided(left);
    std::vector<const Heard*> ranked(left.begin(), left.end());
    for (const bool refuted : {false, true})
      for (const Heard& h : heard_)
        if (h.refuted == refuted && std::find(ranked.begin(), ranked.end(), &h) == ranked.end())
          ranked.push_back(&h);
    for (const Heard* h : ranked) decision.claims.push_back(h->claim);
    add_rival(decision);
    return decision;
  }

 private:
  std::vector<Heard*> standing() {
    std::vector<Heard*> left;
    for (Heard& h : heard_)
      if (!h.refuted) left.push_back(&h);
    return left;
  }

  /// What it would be if the doubt of the first claim is right.
  static void add_rival(Decision& decision) {
    const auto rival = decision.finding.rival;
    if (!rival || std::any_of(decision.claims.begin(), decision.claims.end(),
                              [&](const Claim& claim) { return claim.cause == *rival; }))
      return;
    Claim other{*rival, {decision.finding.doubt}, {}, Depth::size};
    decision.claims.insert(decision.claims.begin() + 1, std::move(other));
  }

  /// If one half of a wider format alone makes the step finite, a claim that says so is confirmed, and claims
  /// of arithmetic that say otherwise are refuted.
  void by_format() {
    const std::vector<Heard*> all = standing();
    const auto says = [](const Heard* h, FormatHalf half) { return h->finding.needs == half; };
    const bool any = std::any_of(all.begin(), all.end(), [&](const Heard* h) {
      return says(h, FormatHalf::range) || says(h, FormatHalf::precision);
    });
    const auto half = any && c_.has_time() ? half_that_helps(c_) : std::nullopt;
    if (!half || std::none_of(all.begin(), all.end(), [&](const Heard* h) { return says(h, *half); })) return;
    const std::string shown =
        *half == FormatHalf::range
            ? "the step is finite with a wider range alone, and not with finer rounding alone"
            : "the step is finite with finer rounding alone, and not with a wider range alone";
    for (Heard* h : all) {
      const Finding& f = h->finding;
      if (says(h, *half))
        h->claim.facts_for.push_back(shown);
      else if (speaks_of_arithmetic(f) && (!f.precision || f.needs))
        h->against(shown);
    }
  }

  void try_changes(Heard& h) {
    const auto attempt = [&](const Change& change) {
      if (h.helped || !c_.has_time()) return;
      h.helped = run_change(c_, change) == TrialResult::finite;
      if (h.helped) h.claim.facts_for.push_back(helps(change.text, "helps, as it should"));
    };
    for (const Change& change : h.finding.wanted) attempt(change);
    for (const Change& change : h.finding.wanted)
      for (const Change& further : change.otherwise) attempt(further);
  }

  /// From the deepest to the first whose change helps; those whose change did not help are then refuted.
  std::vector<Heard*> by_changes(const std::vector<Heard*>& left) {
    for (auto begin = left.begin(); begin != left.end();) {
      const auto end = std::find_if(
          begin, left.end(), [&](const Heard* h) { return h->finding.depth != (*begin)->finding.depth; });
      for (auto h = begin; h != end; ++h) try_changes(**h);
      std::vector<Heard*> helped;
      std::copy_if(begin, end, std::back_inserter(helped), [](const Heard* h) { return h->helped; });
      if (!helped.empty()) {
        for (auto h = left.begin(); h != end; ++h)
          if (!(*h)->helped && !(*h)->finding.wanted.empty())
            (*h)->against(helps((*h)->finding.wanted.front().text, "does not help, which it should"));
        return helped;
      }
      begin = end;
    }
    std::vector<Heard*> deepest;
    std::copy_if(left.begin(), left.end(), std::back_inserter(deepest),
                 [&](const Heard* h) { return h->finding.depth == left.front()->finding.depth; });
    return deepest;
  }

  Finding undecided(const std::vector<Heard*>& left) const {
    Finding f = unknown_finding(c_);
    std::string& text = f.explanation;
    for (std::size_t i = 0; i < left.size(); ++i)
      text.append(i                  ? " and "
                  : left.size() == 2 ? " Two causes claim it: "
                                     : " Several causes claim it: ")
          .append(word(left[i]->finding.label));
    if (!left.empty()) text += "; nothing that was tried tells them apart.";
    for (const Heard* h : left)
      if (!h->finding.wanted.empty())
        f.advice +=
            (f.advice.empty() ? "To tell them apart, change one thing in the program at a time: " : "; ") +
            ("\"" + h->finding.wanted.front().text + "\" helps if it is ") +
            std::string(word(h->finding.label));
    if (!f.advice.empty()) f.advice += ".";
    if (left.empty() && !heard_.empty()) text += " What was claimed was refuted by trying it.";
    return f;
  }

  const Case& c_;
  std::vector<Heard> heard_;  ///< the deepest first
};

}  // namespace

Decision decide(const Case& c, std::vector<Finding> found) {
  return Hearing(c, std::move(found)).decide();
}

}  // namespace nanquest
