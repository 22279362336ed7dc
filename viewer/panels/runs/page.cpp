#include <algorithm>
#include <utility>

#include "viewer/model/findings.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"
#include "viewer/panels/runs/facts.h"

namespace nanquest::viewer {
namespace {

/// "step 90, rank 0, attempt 2"
std::string name_of(const IncidentFiles& files) {
  std::string text = "step " + std::to_string(files.step) + ", rank " + std::to_string(files.rank);
  if (files.attempt > 1) text += ", attempt " + std::to_string(files.attempt);
  return text;
}

/// Where its snapshot is, or why it can't be read; "" if none was written.
std::string file_of(const IncidentEntry& e) {
  if (e.snapshot == Snapshot::never_written) return "";
  return e.error.empty() ? e.files.snapshot : e.error;
}

std::vector<TextColumn> run_columns(const Comparison& c, bool numbers = false) {
  std::vector<TextColumn> columns = {{""}};
  for (const std::string& run : c.runs) columns.push_back({run, numbers});
  return columns;
}

PageTable difference_table(const Comparison& c, const std::string& title,
                           const std::vector<Difference>& differences) {
  PageTable table{PageTable::Kind::plain, title, run_columns(c), {}};
  for (const Difference& d : differences) {
    table.rows.push_back({{d.what}, Sign::none, d.place});
    table.rows.back().cells.insert(table.rows.back().cells.end(), d.values.begin(), d.values.end());
  }
  return table;
}

/// Of two runs: the step and both values.
PageTable parting_table(const Comparison& c) {
  PageTable table{PageTable::Kind::plain,
                  "Where the series part",
                  {{""}, {"first difference", true}, {c.runs[0], true}, {c.runs[1], true}},
                  {}};
  for (const SeriesDifference& s : c.pairs[0].series) {
    if (s.at)
      table.rows.push_back({{s.name, "step " + exact_number(*s.at), number_beside(s.here, s.there),
                             number_beside(s.there, s.here)},
                            Sign::none,
                            Link::to_step(static_cast<std::int64_t>(*s.at)),
                            1});
    else
      table.rows.push_back({{s.name, "none in " + counted(s.steps, "step"), "", ""}});
  }
  return table;
}

/// Of more: the step at which each is another than the open one.
PageTable partings_table(const Comparison& c) {
  PageTable table{
      PageTable::Kind::plain, "First step that differs from " + c.runs[0], run_columns(c, true), {}};
  table.columns.erase(table.columns.begin() + 1);
  std::vector<std::string> names;
  for (const Pair& pair : c.pairs)
    for (const SeriesDifference& s : pair.series)
      if (std::ranges::find(names, s.name) == names.end()) names.push_back(s.name);
  for (const std::string& name : names) {
    table.rows.push_back({{name}});
    for (const Pair& pair : c.pairs) {
      const auto s = std::ranges::find(pair.series, name, &SeriesDifference::name);
      table.rows.back().cells.push_back(s == pair.series.end() ? "-"
                                        : s->at                ? exact_number(*s->at)
                                                               : "none in " + counted(s->steps, "step"));
    }
  }
  return table;
}

PageTable::Row row_of(const IncidentEntry& e, Extent extent) {
  const Link place = Link::to_step(e.files.step);
  if (extent == Extent::whole)
    return {{std::to_string(e.files.step), std::to_string(e.files.rank), e.standing(),
             e.confidence > 0 ? short_number(e.confidence * 100) + " %" : "", e.summary, file_of(e)},
            Sign::none,
            place};
  const std::string file = file_of(e);
  return {{name_of(e.files) + ": " + e.standing() + (e.summary.empty() ? "" : ". ") + e.summary +
           (file.empty() ? "" : "\n    " + file)},
          Sign::none,
          place};
}

}  // namespace

std::vector<Fact> run_facts(const Session& session) {
  std::vector<Fact> facts;
  const auto add = [&](const char* label, const std::string& text) {
    if (!text.empty()) facts.push_back({label, text});
  };
  add("Status", session.status());
  if (const auto& m = session.manifest()) {
    add("Command", m->command);
    add("Started", m->created);
    if (m->world_size > 1) add("Ranks", std::to_string(m->world_size));
  }
  add("Manifest", session.manifest_error());
  add("Series", session.series_error().empty() ? session.lost_series() : session.series_error());
  return facts;
}

std::vector<PageTable> comparison_tables(const Comparison& c) {
  std::vector<PageTable> tables;
  if (!c.settings.empty()) tables.push_back(difference_table(c, "Settings that differ", c.settings));
  PageTable series = c.pairs.size() == 1 ? parting_table(c) : partings_table(c);
  if (!series.rows.empty()) tables.push_back(std::move(series));
  if (!c.incidents.empty())
    tables.push_back(
        difference_table(c, c.pairs.size() == 1 ? "Incidents of both" : "Incidents of all", c.incidents));
  return tables;
}

PanelPage page_of_runs(Session& session, Extent extent) {
  PanelPage page;
  if (const RunFolder* folder = session.folder(); folder != nullptr)
    return {folder->headline(), {}, {}, {run_table(*folder)}};
  if (const StepDiff* diff = session.diff(); diff != nullptr)
    return page_of(*diff, extent == Extent::whole, kWholeRows);
  page.headline = session.path();
  page.facts = run_facts(session);
  if (const Comparison* c = session.comparison(); c != nullptr) {
    for (const std::string& sentence : c->sentences()) page.facts.push_back({"Beside", sentence});
    for (const std::string& line : c->only_lines()) page.facts.push_back({"", line});
    page.tables = comparison_tables(*c);
  }
  if (!session.notes().empty()) {
    PageTable notes{PageTable::Kind::plain, "Notes", {{"On"}, {"Note"}}, {}};
    for (const Note& note : session.notes())
      notes.rows.push_back({{note.where(), note.text}, Sign::none, note.place});
    page.tables.push_back(std::move(notes));
  }
  if (PageTable found = findings_table(session, extent == Extent::whole); !found.rows.empty())
    page.tables.push_back(std::move(found));
  const std::size_t incidents = session.incidents().size();
  PageTable table;
  table.title = incidents == 0 ? verdict_page(session).headline : counted(incidents, "incident");
  table.columns = {{"Incident"}};
  if (extent == Extent::whole)
    table.columns = {{"Step", true}, {"Rank", true}, {"Cause"}, {"Confidence", true}, {"Summary"}, {"File"}};
  for (const IncidentEntry& e : session.incidents()) table.rows.push_back(row_of(e, extent));
  page.tables.push_back(std::move(table));
  return page;
}

}  // namespace nanquest::viewer
