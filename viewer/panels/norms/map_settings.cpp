// What a person may choose of the map of layers, and the bar of its colours.
#include <fmt/format.h>

#include <cmath>

#include "viewer/panels/norms/map_cells.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// "2nd", "98th", "2.5th".
std::string ordinal(double percent) {
  const std::string number = fmt::format("{:.3g}", percent);
  const bool teen = number.size() > 1 && number[number.size() - 2] == '1';
  const bool whole = number.find('.') == std::string::npos;
  const char last = number.back();
  return number + (!whole || teen ? "th"
                   : last == '1'  ? "st"
                   : last == '2'  ? "nd"
                   : last == '3'  ? "rd"
                                  : "th");
}

}  // namespace

std::string colours_text(const MapChoices& choices) {
  if (choices.cut <= 0) return "colours from the smallest to the largest value in view";
  return "colours from the " + ordinal(choices.cut) + " to the " + ordinal(100 - choices.cut) +
         " percentile of the values in view";
}

void draw_map_settings(UiState& state, NormsPanel& view) {
  if (ImGui::Button("Map settings")) ImGui::OpenPopup("map settings");
  if (state.options.still || !ImGui::BeginPopup("map settings")) return;
  MapChoices& choices = view.choices;
  const float em = ImGui::GetFontSize();
  ImGui::SetNextItemWidth(em * 18);
  ImGui::InputTextWithHint("##map layers", "Search layers", view.search, sizeof view.search);
  ImGui::TextUnformatted(colours_text(choices).c_str());
  ImGui::SetNextItemWidth(em * 18);
  ImGui::SliderFloat("##cut", &choices.cut, 0, 20, "leaves out %.1f %% at each end",
                     ImGuiSliderFlags_AlwaysClamp);
  ImGui::TextUnformatted("a cell of several layers or steps shows the");
  if (lit_button("largest value", choices.value == CellValue::largest)) choices.value = CellValue::largest;
  ImGui::SameLine();
  if (lit_button("smallest value", choices.value == CellValue::smallest)) choices.value = CellValue::smallest;
  ImGui::Separator();
  if (ImGui::Button("Fold layers by module")) view.change_rows([](LayerRows& rows) { rows.fold_all(); });
  ImGui::SameLine();
  if (ImGui::Button("Unfold all layers")) view.change_rows([](LayerRows& rows) { rows.unfold_all(); });
  ImGui::EndPopup();
}

void scale_bar(const ColourRange& colours, const MapChoices& choices, bool still, float height) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({em * 4, height});
  if (ImGui::IsItemHovered() && !still)
    ImGui::SetTooltip("%s; values beyond have the colour of the end.\nMap settings changes it.",
                      colours_text(choices).c_str());
  const float top = at.y + em * 0.4f, bottom = at.y + height - em * 1.9f;
  if (bottom <= top) return;  // large text in a low window
  ImDrawList& list = *ImGui::GetWindowDrawList();
  constexpr int steps = 64;
  for (int i = 0; i < steps; ++i) {
    // Whole pixels, so that neighbours meet without a gap.
    const float y0 = std::floor(bottom - (bottom - top) * static_cast<float>(i) / steps),
                y1 = std::floor(bottom - (bottom - top) * static_cast<float>(i + 1) / steps);
    list.AddRectFilled({at.x, y1}, {at.x + em * 0.7f, y0}, viridis((i + 0.5) / steps));
  }
  const ImU32 muted = ImGui::GetColorU32(ImGuiCol_TextDisabled);
  const auto put = [&](float y, const std::string& text) {
    list.AddText({at.x + em * 0.95f, y - em * 0.5f}, muted, text.c_str());
  };
  for (int i = 0; i <= (colours.any ? 2 : 0); ++i) {
    const double value = colours.any ? colours.low * std::pow(colours.high / colours.low, i / 2.0) : 0;
    put(bottom - (bottom - top) * static_cast<float>(i) / 2, fmt::format("{:.2g}", value));
  }
  if (!colours.any || bottom - top < em * 5) return;
  put(top + em, choices.cut > 0 ? fmt::format("{:.3g} %", 100 - choices.cut) : "max");
  put(bottom - em, choices.cut > 0 ? fmt::format("{:.3g} %", choices.cut) : "min");
}

}  // namespace nanquest::viewer
