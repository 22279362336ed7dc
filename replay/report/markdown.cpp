#include <sstream>

#include "replay/report/report.h"
#include "replay/verdict/confidence.h"
#include "replay/verdict/sentences.h"

namespace nanquest {
namespace {

/// Keeps a value inside its table cell.
std::string cell(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '|')
      out += "\\|";
    else if (c == '\n')
      out += ' ';
    else
      out += c;
  }
  return out;
}

void evidence_table(std::ostringstream& out, const Verdict& v) {
  if (v.evidence.empty()) return;
  out << "\n## Evidence\n\n| what | value | limit |\n|---|---|---|\n";
  for (const Evidence& e : v.evidence)
    out << "| " << cell(e.name) << " | " << cell(e.value) << " | " << cell(e.limit) << " |\n";
}

void counterfactual_table(std::ostringstream& out, const Verdict& v) {
  if (v.counterfactuals.empty()) return;
  out << "\n## Tried on this step\n\n| change | kind | result |\n|---|---|---|\n";
  for (const Counterfactual& c : v.counterfactuals)
    out << "| " << cell(c.change) << " | " << word(c.kind) << " | " << cell(trial_text(c)) << " |\n";
}

void not_tested(std::ostringstream& out, const Verdict& v) {
  if (v.not_tested.empty()) return;
  out << "\n## Not tested\n\n";
  for (const std::string& line : v.not_tested) out << "- " << line << "\n";
}

}  // namespace

std::string to_markdown(const Verdict& v) {
  std::ostringstream out;
  if (!v.found) {
    out << "# Step " << v.step
        << (v.unseen.any() ? ": not everything could be looked at\n" : ": nothing harmful found\n");
    if (!v.on_record.empty()) out << "\n- **Why:** " << on_record_text(v) << "\n";
    if (v.unseen.any())
      out << "\n- **What:** " << nothing_text(v) << "\n- **Do:** " << unseen_advice() << "\n";
    not_tested(out, v);
    return out.str();
  }
  out << "# " << word(v.cause) << " at step " << v.step << "\n\n";
  const bool finite = !v.on_record.empty();
  if (finite) {
    out << "- **What:** " << on_record_text(v) << "\n";
  } else {
    out << "- **Where:** `" << where_text(v) << "`\n";
    out << "- **What:** " << v.culprit.count << " bad elements (" << word(v.culprit.value) << ")\n";
  }
  out << "- **Why:** " << v.explanation << "\n";
  if (const std::string blame = blame_text(v.blame); !blame.empty()) out << "- **Blame:** " << blame << "\n";
  if (v.root) out << "- **Root:** " << root_text(*v.root) << "\n";
  for (const Claim& c : v.claims)
    if (c.cause != v.cause || !c.facts_against.empty()) out << "- **Claimed too:** " << claim_text(c) << "\n";
  if (v.ranks) out << "- **Ranks:** " << v.ranks->text << "\n";
  if (v.fix)
    out << "- **Do:** " << v.fix->advice << " Verified: " << fix_text(*v.fix) << ".\n";
  else if (!v.advice.empty())
    out << "- **Do:** " << v.advice << (finite || arrived(v) ? "" : " (" + no_fix_text(v) + ")") << "\n";
  out << "- **Confidence:** " << confidence_text(v) << "\n";
  if (const std::string text = precision_text(v); !text.empty()) out << "- **Precision:** " << text << "\n";
  out << "- **Reproduction:** " << reproduction_text(v.reproduction) << "\n";
  if (!v.source.empty()) out << "- **Rule:** " << v.source << "\n";
  evidence_table(out, v);
  counterfactual_table(out, v);
  if (!v.poison.empty()) {
    out << "\n## Samples\n\n";
    for (std::size_t i = 0; i < v.poison.size(); ++i)
      out << "- " << v.poison[i] << (i < v.poison_ids.size() ? " `" + v.poison_ids[i] + "`" : "") << "\n";
  }
  if (!v.culprit.stack.empty()) {
    out << "\n## Stack\n\n```\n";
    for (const std::string& frame : v.culprit.stack) out << frame << "\n";
    out << "```\n";
  }
  not_tested(out, v);
  return out.str();
}

}  // namespace nanquest
