#include <algorithm>
#include <utility>

#include "imgui.h"
#include "viewer/model/findings.h"
#include "viewer/model/numbers.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/runs/facts.h"
#include "viewer/panels/view.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

void about_run(const Session& session) {
  const auto wrapped = [](const std::string& label, const std::string& text) {
    ImGui::TextDisabled("%s", label.c_str());
    ImGui::SameLine(ImGui::GetFontSize() * 5.5f);
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(text.c_str());
    ImGui::PopTextWrapPos();
  };
  wrapped(session.is_run() ? "Run" : "Snapshot", session.path());
  for (const Fact& fact : run_facts(session)) wrapped(fact.label, fact.text);
}

/// "131", "131 (2)" the second time that it failed.
std::string step_text(const IncidentFiles& files) {
  return std::to_string(files.step) + (files.attempt > 1 ? " (" + std::to_string(files.attempt) + ")" : "");
}

/// Pixels for the widest step. The list is sorted by step: the longest number is at its end.
float step_width(const std::vector<IncidentEntry>& incidents) {
  IncidentFiles widest = incidents.back().files;
  for (const IncidentEntry& entry : incidents) widest.attempt = std::max(widest.attempt, entry.files.attempt);
  return column_width(step_text(widest), 3.6f);
}

void incident_row(UiState& state, int row) {
  const IncidentEntry& entry = state.session.incidents()[static_cast<std::size_t>(row)];
  ImGui::PushID(row);
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const std::string step = step_text(entry.files);
  const bool chosen = state.session.selection().incident == row;
  if (ImGui::Selectable(step.c_str(), chosen, ImGuiSelectableFlags_SpanAllColumns)) {
    state.select_incident(row);
    state.steps.show_all();
  }
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("%s\n%s", entry.files.snapshot.c_str(),
                      (!entry.error.empty()    ? entry.error
                       : entry.summary.empty() ? entry.gate
                                               : entry.summary)
                          .c_str());
  ImGui::TableNextColumn();
  ImGui::Text("%d", entry.files.rank);
  ImGui::TableNextColumn();
  inline_mark(mark_of(gate_of(entry)));
  clipped_text(entry.standing(), ImGui::GetContentRegionAvail().x);
  ImGui::PopID();
}

/// Between the run and those beside it.
void differences(UiState& state, const Comparison& c) {
  ImGui::PushTextWrapPos(0);
  for (const std::string& sentence : c.sentences()) ImGui::TextUnformatted(sentence.c_str());
  for (const std::string& line : c.only_lines()) ImGui::TextUnformatted(line.c_str());
  ImGui::PopTextWrapPos();
  for (const PageTable& table : comparison_tables(c)) {
    heading(table.title.c_str());
    const auto columns = static_cast<int>(table.columns.size());
    if (!ImGui::BeginTable(table.title.c_str(), columns,
                           ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_SizingStretchProp))
      continue;
    for (const TextColumn& column : table.columns) ImGui::TableSetupColumn(column.title.c_str());
    ImGui::TableHeadersRow();
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      const PageTable::Row& row = table.rows[r];
      ImGui::PushID(static_cast<int>(r));
      ImGui::TableNextRow();
      for (std::size_t i = 0; i < row.cells.size(); ++i) {
        ImGui::TableNextColumn();
        if (row.place && i == row.link_cell) {
          if (ImGui::TextLink(row.cells[i].c_str())) state.go(*row.place);
          continue;
        }
        // Short names get columns of their full width; wrapping ones don't.
        const bool wraps = i > 0 || row.cells[i].size() > 24;
        if (wraps) ImGui::PushTextWrapPos(0);
        ImGui::TextUnformatted(row.cells[i].c_str());
        if (wraps) ImGui::PopTextWrapPos();
      }
      ImGui::PopID();
    }
    ImGui::EndTable();
  }
}

void notes(UiState& state) {
  if (state.session.notes().empty()) return;
  heading("Notes");
  int id = 0;
  for (const Note& note : state.session.notes()) {
    ImGui::PushID(id++);
    if (ImGui::TextLink(note.where().c_str())) state.go(note);
    ImGui::SameLine();
    ImGui::TextWrapped("%s", note.text.c_str());
    ImGui::PopID();
  }
}

void findings(const Session& session) {
  const PageTable table = findings_table(session, false);
  if (table.rows.empty()) return;
  heading(table.title.c_str());
  for (const PageTable::Row& row : table.rows) {
    inline_mark(Mark::spike);
    ImGui::TextWrapped("%s", row.cells[0].c_str());
  }
}

struct RunsPanel : PanelView {
  void draw(UiState& state) override;

 private:
  int seen_ = -1;  ///< the incident that was selected when it was drawn last
};

void RunsPanel::draw(UiState& state) {
  const Session& session = state.session;
  if (session.comparison() != nullptr) differences(state, *session.comparison());
  about_run(session);
  notes(state);
  findings(session);
  if (session.incidents().empty()) ImGui::TextWrapped("%s", verdict_page(session).headline.c_str());
  if (!session.incidents().empty()) heading(counted(session.incidents().size(), "incident").c_str());
  if (!session.incident_error().empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, colour().orange);
    ImGui::TextWrapped("%s", session.incident_error().c_str());
    ImGui::PopStyleColor();
  }
  if (session.incidents().empty() ||
      !ImGui::BeginTable("incidents", 3, ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY,
                         {0, session.comparison() == nullptr ? 0 : ImGui::GetFontSize() * 9}))
    return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("Step", ImGuiTableColumnFlags_WidthFixed, step_width(session.incidents()));
  ImGui::TableSetupColumn("Rank", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 2.3f);
  ImGui::TableSetupColumn("Cause", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableHeadersRow();
  const int chosen = session.selection().incident;
  const bool news = std::exchange(seen_, chosen) != chosen;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(session.incidents().size()));
  if (news && chosen >= 0) clipper.IncludeItemByIndex(chosen);
  while (clipper.Step())
    for (int row = clipper.DisplayStart; row < clipper.DisplayEnd; ++row) {
      incident_row(state, row);
      if (news && row == chosen) ImGui::SetScrollHereY();
    }
  ImGui::EndTable();
}

}  // namespace

std::unique_ptr<PanelView> runs_view() {
  return std::make_unique<RunsPanel>();
}

}  // namespace nanquest::viewer
