#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/panels/norms/plots.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// Makes the table again if what it shows has changed. True if it did: it is then in the order of the file.
bool refresh(const UiState& state, NormsPanel& view, const History& history, Statistic s) {
  const auto [first, last] = state.steps.rows(history);
  const std::size_t row = layer_row(history, state.session.selection().step);
  std::string key = std::to_string(state.session.content());
  for (const std::size_t part : {row, first, last, static_cast<std::size_t>(s)})
    key += ' ' + std::to_string(part);
  key.append(" ").append(view.search);
  if (key == view.layers_of) return false;
  view.layers_of = key;
  view.layers = layer_table(history, s, row, first, last, view.search);
  return true;
}

void sort_as_asked(NormsPanel& view, bool anew) {
  ImGuiTableSortSpecs* wanted = ImGui::TableGetSortSpecs();
  if (wanted == nullptr || wanted->SpecsCount == 0 || !(anew || wanted->SpecsDirty)) return;
  view.layers.sort(wanted->Specs[0].ColumnIndex - 1,
                   wanted->Specs[0].SortDirection == ImGuiSortDirection_Descending);
  wanted->SpecsDirty = false;
}

void cell(const std::optional<double>& value) {
  if (!value) return ImGui::TextDisabled("-");
  if (!std::isfinite(*value))
    inline_mark(std::isnan(*value) ? Mark::nan : *value > 0 ? Mark::pos_inf : Mark::neg_inf);
  ImGui::TextUnformatted(short_number(*value).c_str());
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("%s", short_number(*value).c_str());
}

void row_of(UiState& state, const LayerTable::Row& row) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool chosen = state.session.selection().layer == row.layer;
  constexpr ImGuiSelectableFlags flags =
      ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap;
  if (ImGui::Selectable(row.layer.c_str(), chosen, flags))
    state.session.select_layer(chosen ? "" : row.layer);
  for (const std::optional<double>& value : row.values)
    if (ImGui::TableNextColumn()) cell(value);
}

}  // namespace

void draw_layer_table(UiState& state, NormsPanel& view, const History& history, Statistic s, float height) {
  bool anew = refresh(state, view, history, s);
  ImGui::BeginGroup();
  if (std::exchange(view.focus_search, false)) ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(ImGui::GetFontSize() * 14, ImGui::GetContentRegionAvail().x * 0.5f));
  ImGui::InputTextWithHint("##layers", "Search layers", view.search, sizeof view.search);
  anew = refresh(state, view, history, s) || anew;
  ImGui::SameLine();
  ImGui::TextDisabled("%s at step %s", counted(view.layers.rows.size(), "layer").c_str(),
                      exact_number(view.layers.step).c_str());
  const float left = height - ImGui::GetFrameHeightWithSpacing();
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX | ImGuiTableFlags_RowBg | ImGuiTableFlags_Resizable |
      ImGuiTableFlags_Hideable | ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate |
      ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_NoSavedSettings;
  const int columns = static_cast<int>(view.layers.columns.size()) + 1;
  if (ImGui::BeginTable(("layers" + std::to_string(columns)).c_str(), columns, flags, {0, left})) {
    ImGui::TableSetupScrollFreeze(1, 1);
    ImGui::TableSetupColumn("Layer", ImGuiTableColumnFlags_None);
    for (const std::string& title : view.layers.columns)
      ImGui::TableSetupColumn(title.c_str(), ImGuiTableColumnFlags_PreferSortDescending);
    ImGui::TableHeadersRow();
    if (ImGuiTableSortSpecs* wanted = ImGui::TableGetSortSpecs();
        wanted != nullptr && wanted->SpecsCount == 0 && wanted->SpecsDirty) {
      view.layers_of.clear();  // unsorted again: in the order of the file
      anew = refresh(state, view, history, s);
      wanted->SpecsDirty = false;
    }
    sort_as_asked(view, anew);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(view.layers.rows.size()));
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
        row_of(state, view.layers.rows[static_cast<std::size_t>(i)]);
    ImGui::EndTable();
  }
  ImGui::EndGroup();
}

}  // namespace nanquest::viewer
