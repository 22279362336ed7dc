#include "viewer/model/findings.h"

#include <algorithm>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kMostFacts = 8;

const std::vector<ManifestFinding>& findings_of(const Session& session) {
  static const std::vector<ManifestFinding> none;
  return session.manifest() ? session.manifest()->findings : none;
}

bool has_ranks(const Session& session) {
  return session.manifest() && session.manifest()->world_size > 1;
}

}  // namespace

std::string finding_text(const ManifestFinding& finding, bool of_ranks) {
  std::string text = "step " + std::to_string(finding.step);
  if (of_ranks) text += ", rank " + std::to_string(finding.rank);
  return text + ": " + (finding.label.empty() ? finding.kind : finding.label) + ": " + finding.text;
}

std::vector<Fact> finding_facts(const Session& session) {
  const std::vector<ManifestFinding>& all = findings_of(session);
  std::vector<Fact> facts;
  for (std::size_t i = 0; i < std::min(kMostFacts, all.size()); ++i)
    facts.push_back({kFound, finding_text(all[i], has_ranks(session)), Sign::caution});
  if (all.size() > kMostFacts)
    facts.push_back(
        {kFound, counted(all.size() - kMostFacts, "more finding") + ", listed in the panel Runs"});
  return facts;
}

PageTable findings_table(const Session& session, bool whole) {
  const std::vector<ManifestFinding>& all = findings_of(session);
  PageTable table{PageTable::Kind::plain, counted(all.size(), "finding"), {{"Finding"}}, {}};
  if (!whole) {
    for (const ManifestFinding& f : all)
      table.rows.push_back({{finding_text(f, has_ranks(session))}, Sign::caution});
    return table;
  }
  table.columns = {{"Step", true}};
  if (has_ranks(session)) table.columns.push_back({"Rank", true});
  for (const char* title : {"Kind", "Label", "Tensor", "File", "Text"}) table.columns.push_back({title});
  for (const ManifestFinding& f : all) {
    std::vector<std::string> cells = {std::to_string(f.step)};
    if (has_ranks(session)) cells.push_back(std::to_string(f.rank));
    for (const std::string& cell : {f.kind, f.label, f.tensor, f.file, f.text}) cells.push_back(cell);
    table.rows.push_back({std::move(cells), Sign::caution});
  }
  return table;
}

}  // namespace nanquest::viewer
