// The culprit's inputs and output: recorded, in fp32, in fp64, and their difference.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "viewer/model/numbers.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/tensor/parts.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// Looks at an element of the values, as recorded if they are held.
void look_at(UiState& state, const CulpritValues& values, std::uint64_t element) {
  const auto held = std::ranges::find_if(values.paths, [](const std::string& path) { return !path.empty(); });
  if (held == values.paths.end()) return;
  state.session.select_tensor(*held);
  state.session.select_element(element);
}

/// Chooses one of the values by choosing its tensor.
void names(UiState& state, const std::vector<CulpritValues>& values, const std::string& shown) {
  for (const CulpritValues& value : values) {
    const std::string label = value.name + "##culprit";
    ImGui::SameLine();
    if (ImGui::GetContentRegionAvail().x < ImGui::CalcTextSize(value.name.c_str()).x + ImGui::GetFontSize())
      ImGui::NewLine();
    if (lit_button(label.c_str(), value.name == shown, true)) look_at(state, value, 0);
  }
}

void value_cell(const SideBySide& side, const SideBySide::Row& row, std::size_t run) {
  ImGui::TableNextColumn();
  const double value = row.values[run];
  if (!side.held[run]) return ImGui::TextDisabled("not held");
  if (!std::isfinite(value))
    inline_mark(std::isnan(value) ? Mark::nan : value > 0 ? Mark::pos_inf : Mark::neg_inf);
  ImGui::TextUnformatted(short_number(value).c_str());
}

void worst_table(UiState& state, const CulpritValues& values, const SideBySide& side) {
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_BordersInnerH | ImGuiTableFlags_ScrollY |
                                    ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_NoSavedSettings;
  const float row_height = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
  const float height = row_height * (static_cast<float>(std::min<std::size_t>(side.rows.size(), 12)) + 1.5f);
  if (!ImGui::BeginTable("culprit values", 5, flags, {0, height})) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* head : {"Element", "Recorded", "In fp32", "In fp64", "Difference"})
    ImGui::TableSetupColumn(head);
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(side.rows.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const SideBySide::Row& row = side.rows[static_cast<std::size_t>(i)];
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const std::string element = (row.position.empty() ? grouped(row.element) : row.position) + "##worst";
      ImGui::PushID(i);
      if (ImGui::Selectable(element.c_str(), false, ImGuiSelectableFlags_SpanAllColumns))
        look_at(state, values, row.element);
      ImGui::PopID();
      for (std::size_t run = 0; run < kReplayedRuns.size(); ++run) value_cell(side, row, run);
      ImGui::TableNextColumn();
      if (row.changes) ImGui::PushStyleColor(ImGuiCol_Text, colour().vermillion);
      clipped_text(row_difference(row), ImGui::GetContentRegionAvail().x);
      if (row.changes) ImGui::PopStyleColor();
    }
  ImGui::EndTable();
}

}  // namespace

void draw_culprit(UiState& state, TensorPanel& panel) {
  const OpenIncident& incident = *state.session.incident();
  if (incident.doc.culprit.op == kNone) return;
  const std::vector<CulpritValues> values = culprit_values(incident);
  heading(("Culprit, op " + std::to_string(incident.doc.culprit.op) + ": recorded and replayed").c_str());
  if (const std::string missing = missing_text(incident, values); !missing.empty()) {
    ImGui::TextWrapped("Values %s", missing.c_str());
    if (!state.options.still && !incident.replayed && !state.replaying.runs()) replay_button(state, true);
  }
  if (values.empty()) return;
  const std::string shown = shown_values(values, state.session.selection().tensor);
  ImGui::TextDisabled("of");
  names(state, values, shown);
  if (state.session.culprit_waits())
    panel.culprit_wish.ask(state, "culprit " + shown, shown,
                           [](Session& session) { (void)session.culprit_side(); });
  const SideBySide* side = state.session.read_culprit_side();
  if (side == nullptr) return panel.culprit_wish.draw(state);
  ImGui::TextWrapped("%s", difference_text(*side).c_str());
  const auto of = std::ranges::find(values, side->name, &CulpritValues::name);
  if (!side->rows.empty() && of != values.end()) worst_table(state, *of, *side);
}

}  // namespace nanquest::viewer
