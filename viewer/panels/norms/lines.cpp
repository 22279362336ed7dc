#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/norms/plots.h"
#include "viewer/ui/curves.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/run_lines.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// The name of the chosen layer, left of its last finite point in view.
void name_chosen(const UiState& state, const History& history, Statistic s, std::size_t first,
                 std::size_t last) {
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const std::string& name = history.layers(s)[i];
    if (name != state.session.selection().layer) continue;
    std::size_t row = last;
    while (row > first &&
           !(std::isfinite(history.series(s, i)[row - 1]) && history.series(s, i)[row - 1] > 0))
      --row;
    if (row == first) return;
    const ImVec2 at = ImPlot::PlotToPixels(history.steps()[row - 1], history.series(s, i)[row - 1]),
                 size = ImGui::CalcTextSize(name.c_str());
    const float left = std::max(at.x - size.x - ImGui::GetFontSize() * 3, ImPlot::GetPlotPos().x + 4);
    const float above = std::max(at.y - size.y * 0.5f, ImPlot::GetPlotPos().y + size.y * 2.2f);
    ImDrawList& list = *ImPlot::GetPlotDrawList();
    list.AddRectFilled({left - 4, above - 2}, {left + size.x + 4, above + size.y + 2},
                       faint(colour().plot, 0.86f), 3);
    list.AddText({left, above}, ImGui::GetColorU32(colour().strong), name.c_str());
  }
}

std::string nearest_layer(const History& history, Statistic s, std::size_t row) {
  const double mouse = ImGui::GetMousePos().y;
  double best = 20;
  std::string name;
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const double v = history.series(s, i)[row];
    if (!std::isfinite(v) || v <= 0) continue;
    const double distance = std::abs(ImPlot::PlotToPixels(history.steps()[row], v).y - mouse);
    if (distance < best) {
      best = distance;
      name = history.layers(s)[i];
    }
  }
  return name;
}

/// The chosen layer's value in each of the other runs.
std::string beside_text(const std::vector<RunCurve>& beside, double step) {
  std::string text;
  for (const RunCurve& other : beside)
    if (const std::string at = values_at(*other.history, *other.values, step); !at.empty())
      text += "; " + letter_of_run(other.run) + " " + at;
  return text;
}

void react(UiState& state, NormsPanel& view, const History& history, Statistic s) {
  if (state.options.still || !ImPlot::IsPlotHovered()) return;
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return state.steps.show_all();
  const std::size_t row = history.row_of(std::round(ImPlot::GetPlotMousePos().x));
  std::string text = "step " + exact_number(history.steps()[row]);
  const std::string near = nearest_layer(history, s, row);
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const double v = history.series(s, i)[row];
    if (history.layers(s)[i] == near || history.layers(s)[i] == state.session.selection().layer ||
        !std::isfinite(v))
      text += "\n" + history.layers(s)[i] + " " + short_number(v) +
              (history.layers(s)[i] == state.session.selection().layer
                   ? beside_text(view.beside_of(state.session), history.steps()[row])
                   : "");
    if (text.size() > 600) break;
  }
  if (const Pyramid* loss = history.scalar("loss")) text += "\nloss " + short_number((*loss)[row]);
  ImGui::SetTooltip("%s", text.c_str());
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) state.select_step(history.steps()[row], near);
}

/// The runs of a layer's cells: the same as finite_runs for as many pixels, without looking at the values
/// again.
std::vector<Curve> runs_of_cells(const History& history, const HeatMap& map, std::size_t layer, double foot) {
  std::vector<Curve> runs(1);
  for (std::size_t c = 0; c < map.columns; ++c)
    add_to_runs(runs, map.at(layer, c).extremes, history.steps()[map.edges[c]],
                history.steps()[map.edges[c + 1] - 1], foot);
  return runs;
}

/// The chosen layer in every run, or its own values behind it if it is smoothed.
void draw_chosen(const UiState& state, NormsPanel& view, const History& history, Statistic s,
                 const std::vector<RunCurve>& beside, double foot) {
  const auto& layers = history.layers(s);
  const auto chosen = std::ranges::find(layers, state.session.selection().layer);
  if (chosen == layers.end()) return;
  const RunCurve own = view.curve_of(state.session, static_cast<std::size_t>(chosen - layers.begin()));
  if (state.session.others().empty()) return draw_unsmoothed(own, state.steps, foot, colour().strong);
  const std::size_t runs = state.session.comparison()->runs.size();
  for (const RunCurve& other : beside) draw_run_curve(other, state.steps, foot, runs);
  draw_run_curve(own, state.steps, foot, runs);
}

/// One lane for all layers.
void draw_bundle_lane(const History& history, const HeatMap& map, float lane) {
  const float r = ImGui::GetFontSize() * 0.27f, y = ImPlot::GetPlotPos().y + lane;
  for (std::size_t c = 0; c < map.columns; ++c)
    if (const Extremes& all = map.all[c]; all.non_finite() > 0) {
      const double middle = (history.steps()[map.edges[c]] + history.steps()[map.edges[c + 1] - 1]) / 2;
      draw_mark(*ImPlot::GetPlotDrawList(), {ImPlot::PlotToPixels(middle, 1).x, y}, r, worst(all));
    }
}

}  // namespace

RunCurve NormsPanel::curve_of(const Session& session, std::size_t layer) {
  const Selection& selection = session.selection();
  const Statistic s = selection.statistic;
  if (selection.smoothing <= 0) return layer_curve(session, s, layer);
  std::string key = std::to_string(session.content()) + ' ' + std::to_string(static_cast<int>(s)) + ' ' +
                    std::to_string(selection.smoothing);
  if (key != smooth_of_) smooth_.clear();
  smooth_of_ = std::move(key);
  std::shared_ptr<const Pyramid>& smooth = smooth_[layer];
  if (smooth == nullptr) smooth = layer_curve(session, s, layer).smooth;
  return {0, &session.history().series(s, layer), 0, &session.history(), smooth};
}

const std::vector<RunCurve>& NormsPanel::beside_of(const Session& session) {
  const Selection& selection = session.selection();
  std::string key = std::to_string(session.content()) + ' ' +
                    std::to_string(static_cast<int>(selection.statistic)) + ' ' +
                    std::to_string(selection.smoothing) + ' ' + selection.layer;
  if (key != beside_key_) beside_ = layer_beside(session, selection.statistic);
  beside_key_ = std::move(key);
  return beside_;
}

void draw_lines(UiState& state, NormsPanel& view, const History& history, Statistic s, float height) {
  const std::vector<RunCurve>& beside = view.beside_of(state.session);
  Extremes all = history.extremes(s, 0, history.rows());
  double foot = history.smallest_positive(s) > 0 ? history.smallest_positive(s) / 2 : 1e-3;
  for (const RunCurve& other : beside) {
    all.add(other.values->query(0, other.values->size()));
    if (other.history->smallest_positive(s) > 0)
      foot = std::min(foot, other.history->smallest_positive(s) / 2);
  }
  const double top = all.has_finite() && all.max > 0 ? all.max * 4 : 1;
  const std::size_t layers = history.layers(s).size();
  const bool named =
      layers <= 6;  // beyond that colours repeat: depth as colour, the name on the chosen line and on hover
  const ImPlotFlags flags = named ? kBarePlot & ~ImPlotFlags_NoLegend : kBarePlot;
  const std::string id = std::string("##lines") + statistic_table(s);
  if (!ImPlot::BeginPlot(id.c_str(),
                         {width_of_steps(), height - 2}, flags))
    return;
  ImPlot::SetupLegend(ImPlotLocation_NorthWest, ImPlotLegendFlags_Horizontal);
  setup_curves(state.steps, view.values[static_cast<int>(s)],
               {"step", statistic_title(s), 0, true, foot, top});
  const auto [first, last] = state.steps.rows(history);
  const HeatMap& map = shown_map(state, view.map, history, s, ImPlot::GetPlotSize().x);
  const bool bundle = layers > kFewLayers;
  const bool some_chosen = !state.session.selection().layer.empty();
  for (std::size_t i = 0; i < layers; ++i) {
    const std::string& name = history.layers(s)[i];
    const bool chosen = name == state.session.selection().layer;
    ImPlotSpec spec;
    const double depth =
        0.2 + 0.8 * static_cast<double>(i) / static_cast<double>(std::max<std::size_t>(layers, 2) - 1);
    spec.LineColor = chosen  ? colour().strong
                     : named ? series_colour(i)
                             : ImGui::ColorConvertU32ToFloat4(viridis(depth));
    spec.LineColor.w = some_chosen && !chosen ? 0.6f : 1.0f;
    spec.LineWeight = chosen ? 3.0f : 1.6f;
    if (chosen && !state.session.others().empty()) continue;  // drawn with those beside it
    const std::vector<Curve> runs = bundle && !chosen
                                        ? runs_of_cells(history, map, i, foot)
                                        : finite_runs(history, view.curve_of(state.session, i).shown(), first,
                                                      last, foot, ImPlot::GetPlotSize().x);
    for (const Curve& run : runs)
      if (!run.x.empty())
        ImPlot::PlotLine(name.c_str(), run.x.data(), run.y.data(), static_cast<int>(run.x.size()), spec);
  }
  ImPlot::PushPlotClipRect();
  draw_chosen(state, view, history, s, beside, foot);
  const float lane = ImGui::GetFontSize() * 1.35f;
  if (bundle) draw_bundle_lane(history, map, lane);
  for (std::size_t i = 0; i < layers && first < last && !bundle; ++i)
    draw_bad_lane(history, history.series(s, i), first, last, lane);
  ImPlot::PopPlotClipRect();
  name_chosen(state, history, s, first, last);
  if (!state.session.others().empty() && !some_chosen)
    ImPlot::GetPlotDrawList()->AddText(
        {ImPlot::GetPlotPos().x + ImGui::GetFontSize() * 0.5f,
         ImPlot::GetPlotPos().y + ImPlot::GetPlotSize().y - ImGui::GetFontSize() * 1.4f},
        ImGui::GetColorU32(colour().text), "choose a layer to see it in all runs");
  draw_events(history, state.session.selection().step);
  react(state, view, history, s);
  ImPlot::EndPlot();
}

}  // namespace nanquest::viewer
