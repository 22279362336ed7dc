// The tables of the verdict page: claims, measurements, experiments, open questions.
#include <algorithm>

#include "probe/snapshot/frames.h"
#include "replay/verdict/sentences.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {
namespace {

/// Whether the fact of a claim says what a row of the evidence says.
bool is_evidence(const VerdictPage& page, const std::string& fact) {
  return std::any_of(page.evidence.begin(), page.evidence.end(),
                     [&](const Evidence& e) { return fact.rfind(e.name + ": " + e.value, 0) == 0; });
}

std::string standing(const VerdictPage& page, const Claim& claim) {
  if (page.cause == claim.cause) return "the verdict";
  return claim.facts_against.empty() ? "not refuted" : "refuted";
}

/// One row per fact; the cause and its state are in its first row. Facts that the table of evidence shows are
/// only counted.
void add_claim(const VerdictPage& page, const Claim& claim, PageTable& table) {
  std::string cause(word(claim.cause)), stands = standing(page, claim);
  const auto row = [&](const char* speaks, const std::string& fact) {
    table.rows.push_back({{std::exchange(cause, ""), std::exchange(stands, ""), speaks, fact}});
  };
  std::uint64_t measured = 0;
  for (const std::string& fact : claim.facts_for) measured += is_evidence(page, fact);
  if (measured > 0) row("for", counted(measured, "measured fact") + ", see Evidence");
  for (const std::string& fact : claim.facts_for)
    if (!is_evidence(page, fact)) row("for", fact);
  for (const std::string& fact : claim.facts_against) row("against", fact);
  if (!cause.empty()) row("", "");
}

/// The result of a change, and its meaning.
PageTable::Row trial_row(const VerdictPage& page, const Counterfactual& trial) {
  const bool fix = page.fix && page.fix->change == trial.change;
  std::string result = trial_text(trial);
  Sign sign = !trial.not_a_fix.empty()                    ? Sign::caution
              : trial.result == TrialResult::finite       ? Sign::finite
              : trial.result == TrialResult::in_range     ? Sign::finite
              : trial.result == TrialResult::non_finite   ? Sign::non_finite
              : trial.result == TrialResult::out_of_range ? Sign::caution
                                                          : Sign::failed;
  if (fix && trial.result == TrialResult::finite) {
    result += page.fix_verified() ? ": the verified fix" : ": a fix, not verified";
    if (page.fix_verified()) sign = Sign::verified;
  }
  return {{result, std::string(word(trial.kind)), trial.change}, sign};
}

/// A placebo changes what the cause calls irrelevant: if it helps, the cause is not proved.
PageTable::Row placebo_row(const Counterfactual& trial) {
  switch (trial.result) {
    case TrialResult::non_finite:
      return {{"still non-finite, as it should be", trial.change}, Sign::non_finite};
    case TrialResult::finite:
      return {{"finite: it helps, which it should not", trial.change}, Sign::caution};
    case TrialResult::out_of_range:
      return {{trial_text(trial) + ", as it should be", trial.change}, Sign::caution};
    case TrialResult::in_range:
      return {{trial_text(trial) + ": it helps, which it should not", trial.change}, Sign::caution};
    case TrialResult::failed:
      break;
  }
  return {{"failed: proves nothing", trial.change}, Sign::failed};
}

}  // namespace

std::vector<PageTable> verdict_tables(const VerdictPage& page) {
  using Kind = PageTable::Kind;
  PageTable claims{Kind::plain, "Claims", {{"Cause"}, {"Stands"}, {"Speaks"}, {"Fact"}}, {}};
  for (const Claim& claim : page.claims) add_claim(page, claim, claims);
  PageTable evidence{Kind::evidence, "Evidence", {{"Measured"}, {"Value"}, {"Limit"}}, {}};
  for (const Evidence& e : page.evidence) evidence.rows.push_back({{e.name, e.value, e.limit}});
  PageTable tried{Kind::plain, "Tried on this step", {{"Result"}, {"Kind"}, {"Change"}}, {}};
  PageTable placebos{Kind::plain,
                     "Control experiments: irrelevant changes, which must not help",
                     {{"Result"}, {"Change"}},
                     {}};
  for (const Counterfactual& trial : page.trials)
    if (trial.kind == ChangeKind::placebo)
      placebos.rows.push_back(placebo_row(trial));
    else
      tried.rows.push_back(trial_row(page, trial));
  PageTable open{Kind::plain, "Open, not tested", {{"Question"}}, {}};
  for (const std::string& text : page.not_tested) open.rows.push_back({{text}});
  std::vector<PageTable> out = {claims, evidence, tried, placebos, open};
  std::erase_if(out, [](const PageTable& table) { return table.rows.empty(); });
  return out;
}

std::vector<PageTable> place_tables(const Session& session) {
  std::vector<PageTable> out;
  const std::vector<std::string>& stack = session.culprit_stack();
  const Source& source = session.source();
  if (!stack.empty()) {
    out.push_back({PageTable::Kind::plain, "Called from, innermost first", {{"Frame"}}, {}});
    for (const std::string& frame : stack)
      out.back().rows.push_back({{(frame == program_frame(stack) ? "> " : "  ") + frame}});
  }
  if (!source.lines.empty()) {
    out.push_back({PageTable::Kind::source, "Source, " + source.path, {{"Line", true}, {"Code"}}, {}});
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::size_t line = source.first + i;
      const bool here = line == source.line;
      out.back().rows.push_back(
          {.cells = {(here ? "> " : "") + std::to_string(line), source.lines[i]}, .here = here});
    }
  }
  return out;
}

}  // namespace nanquest::viewer
