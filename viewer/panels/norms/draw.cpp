#include <functional>
#include <memory>
#include <string>

#include "viewer/panels/norms/plots.h"
#include "viewer/panels/run_legend.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

constexpr const char* kPlotTitles[] = {"Both", "Heat map", "Lines", "Table"};

void legend_item(Mark mark, const char* text) {
  ImGui::AlignTextToFramePadding();
  inline_mark(mark, ImGui::GetStyle().FramePadding.y);
  ImGui::TextDisabled("%s", text);
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.9f);
}

void legend() {
  legend_item(Mark::nan, "NaN");
  legend_item(Mark::pos_inf, "+Inf");
  legend_item(Mark::neg_inf, "-Inf");
  legend_item(Mark::spike, "spike");
  legend_item(Mark::scale_overflow, "loss scale overflow");
  ImGui::NewLine();
}

void controls(UiState& state, NormsPanel& view) {
  Session& session = state.session;
  for (int i = 0; i < kStatistics; ++i) {
    const auto s = static_cast<Statistic>(i);
    if (!session.history().has(s)) continue;
    if (lit_button(statistic_title(s), session.selection().statistic == s)) session.select_statistic(s);
    ImGui::SameLine();
    const float next =
        i + 1 < kStatistics ? ImGui::CalcTextSize(statistic_title(static_cast<Statistic>(i + 1))).x : 0;
    if (ImGui::GetContentRegionAvail().x < next + ImGui::GetFrameHeight() * 1.6f) ImGui::NewLine();
  }
  ImGui::NewLine();
  for (int i = 0; i < 4; ++i) {
    if (lit_button(kPlotTitles[i], view.plots == i)) view.plots = static_cast<NormsPanel::Plots>(i);
    ImGui::SameLine();
  }
  if (ImGui::Button("All steps")) state.steps.show_all();
  if (view.plots != NormsPanel::lines) {
    ImGui::SameLine();
    draw_map_settings(state, view);
  }
  if (!session.selection().layer.empty()) {
    ImGui::SameLine();
    if (ImGui::Button("All layers")) session.select_layer("");
  }
  const float needed = ImGui::GetFontSize() * 23;
  ImGui::SameLine(0, ImGui::GetFontSize() * 1.5f);
  if (ImGui::GetContentRegionAvail().x < needed) ImGui::NewLine();
  legend();
}

/// The table, beside the heat map if there is room for both.
void draw_as_table(UiState& state, NormsPanel& view, const History& history, Statistic s) {
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (room.x < ImGui::GetFontSize() * 52) return draw_layer_table(state, view, history, s, room.y);
  if (ImGui::BeginChild("map", {room.x * 0.45f, room.y})) draw_heat_map(state, view, history, s, room.y);
  ImGui::EndChild();
  ImGui::SameLine();
  draw_layer_table(state, view, history, s, room.y);
}

}  // namespace

std::unique_ptr<PanelView> norms_view() {
  return std::make_unique<NormsPanel>();
}

std::vector<Action> NormsPanel::actions(UiState& state) {
  std::vector<Action> out;
  const auto add = [&](const std::string& name, const std::function<void()>& run) {
    out.push_back({"Layers", name, 0, [&state, run] {
                     run();
                     state.wanted = Panel::norms;
                   }});
  };
  for (int i = 0; i < kStatistics; ++i)
    if (const auto s = static_cast<Statistic>(i); state.session.history().has(s))
      add(std::string("Show ") + statistic_title(s), [&state, s] { state.session.select_statistic(s); });
  for (const Plots wanted : {both, heat_map, lines, table})
    add(std::string("Norms as ") + kPlotTitles[wanted], [this, wanted] { plots = wanted; });
  add("Show all layers", [&state] { state.session.select_layer(""); });
  add("Fold layers by module", [this] { change_rows([](LayerRows& all) { all.fold_all(); }); });
  add("Unfold all layers", [this] { change_rows([](LayerRows& all) { all.unfold_all(); }); });
  add("Map colours from the 2nd to the 98th percentile", [this] { choices.cut = 2; });
  add("Map colours from the smallest to the largest value", [this] { choices.cut = 0; });
  add("Map cells show the largest value", [this] { choices.value = CellValue::largest; });
  add("Map cells show the smallest value", [this] { choices.value = CellValue::smallest; });
  add("Search layers", [this] {
    plots = table;
    focus_search = true;
  });
  return out;
}

void NormsPanel::draw(UiState& state) {
  const History& history = state.session.history();
  const Statistic s = state.session.selection().statistic;
  if (!history.has(s))
    return ImGui::TextWrapped("%s",
                              info_of(Panel::norms).page(state.session, Extent::glance).headline.c_str());
  controls(state, *this);
  // Where there is little room, the legend of the timeline must do.
  if (plots == lines || (plots == both && ImGui::GetContentRegionAvail().y > ImGui::GetFontSize() * 17))
    draw_run_legend(state);
  state.fit_steps();
  const float height = ImGui::GetContentRegionAvail().y;
  if (plots == table) return draw_as_table(state, *this, history, s);
  const bool aligned = begin_plots_of_steps();
  // Two plots would be too small here.
  const Plots shown = plots == both && height < ImGui::GetFontSize() * 14 ? heat_map : plots;
  if (shown != lines) draw_heat_map(state, *this, history, s, shown == heat_map ? height : height * 0.52f);
  if (shown != heat_map) draw_lines(state, *this, history, s, ImGui::GetContentRegionAvail().y);
  end_plots_of_steps(aligned);
}

}  // namespace nanquest::viewer
