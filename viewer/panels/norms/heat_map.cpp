#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "viewer/model/numbers.h"
#include "viewer/panels/norms/map_cells.h"
#include "viewer/ui/curves.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// Where a layer stands; -1 if it is not there.
std::ptrdiff_t index_of(const std::vector<std::string>& layers, const std::string& name) {
  const auto found = std::ranges::find(layers, name);
  return found == layers.end() ? -1 : found - layers.begin();
}

/// "blocks.3: max of 9"; the end of a long name is what distinguishes it.
std::string tick_of(const LayerRows::Row& row, CellValue value, std::size_t more) {
  std::string says;
  if (row.is_module())
    says = (value == CellValue::largest ? ": max of " : ": min of ") + std::to_string(row.layers.size());
  if (more > 0) says += " +" + std::to_string(more);
  const std::size_t most = 26 - std::min<std::size_t>(says.size(), 16);
  return (row.name.size() > most ? "..." + row.name.substr(row.name.size() - (most - 2)) : row.name) + says;
}

/// Names of the rows in view as ticks, thinned out where rows are lower than the text; that of the chosen one
/// always.
void row_ticks(const NormsPanel& view, std::ptrdiff_t chosen, float height) {
  const auto& rows = view.rows.rows();
  const LayerRange& range = view.layer_range;
  const double room = std::max(1.0f, height - ImGui::GetFontSize() * 3);
  const double least = (range.to() - range.from()) * static_cast<double>(ImGui::GetFontSize()) / room;
  const auto per_line = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, view.drawn.rows_per_line));
  auto every = static_cast<std::ptrdiff_t>(std::max(1.0, std::ceil(least)));
  every = (every + per_line - 1) / per_line * per_line;
  std::vector<double> at;
  std::vector<std::string> names;
  std::vector<const char*> labels;
  const auto add = [&](std::ptrdiff_t i, std::ptrdiff_t more) {
    at.push_back(static_cast<double>(i) + 0.5);
    names.push_back(
        tick_of(rows[static_cast<std::size_t>(i)], view.choices.value, static_cast<std::size_t>(more)));
  };
  const auto first = static_cast<std::ptrdiff_t>(range.from()) / per_line * per_line;
  const auto last = std::min(static_cast<std::ptrdiff_t>(std::ceil(range.to())), std::ssize(rows));
  for (std::ptrdiff_t i = first; i < last; i += every)
    if (chosen < 0 || std::abs(i - chosen) >= every) add(i, std::min(per_line, std::ssize(rows) - i) - 1);
  if (chosen >= first && chosen < last) add(chosen, 0);
  labels.reserve(names.size());
  for (const std::string& name : names) labels.push_back(name.c_str());
  ImPlot::SetupAxisTicks(ImAxis_Y1, at.data(), static_cast<int>(at.size()), labels.data());
}

/// The layers of the line that a row is drawn in.
std::vector<std::uint32_t> layers_of_line(const NormsPanel& view, std::size_t row) {
  const std::size_t first = row / view.drawn.rows_per_line * view.drawn.rows_per_line;
  std::vector<std::uint32_t> layers;
  for (std::size_t r = first; r < std::min(first + view.drawn.rows_per_line, view.rows.rows().size()); ++r)
    layers.insert(layers.end(), view.rows.rows()[r].layers.begin(), view.rows.rows()[r].layers.end());
  return layers;
}

/// Of several layers at a step: which value is shown, and whose it is.
std::string value_text(const NormsPanel& view, const History& history, Statistic s,
                       const std::vector<std::uint32_t>& layers, std::size_t row) {
  if (layers.size() == 1)
    return std::string(statistic_title(s)) + " " + short_number(history.series(s, layers[0])[row]);
  const bool largest = view.choices.value == CellValue::largest;
  std::ptrdiff_t which = -1;
  double best = 0;
  std::size_t bad = 0;
  for (const std::uint32_t layer : layers) {
    const double value = history.series(s, layer)[row];
    bad += !std::isfinite(value);
    if (!std::isfinite(value) || (which >= 0 && (largest ? value <= best : value >= best))) continue;
    which = layer;
    best = value;
  }
  std::string text = std::string(largest ? "largest" : "smallest") + " of " + counted(layers.size(), "layer");
  if (which >= 0)
    text += ": " + short_number(best) + " in " + history.layers(s)[static_cast<std::size_t>(which)];
  return bad == 0 ? text : text + "\n" + counted(bad, "layer") + " not finite";
}

void react(UiState& state, const NormsPanel& view, const History& history, Statistic s) {
  if (state.options.still || !ImPlot::IsPlotHovered()) return;
  const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
  const auto& rows = view.rows.rows();
  if (mouse.y < 0 || mouse.y >= static_cast<double>(rows.size()) || view.map.map.columns == 0) return;
  const LayerRows::Row& over = rows[static_cast<std::size_t>(mouse.y)];
  const std::vector<std::uint32_t> layers = layers_of_line(view, static_cast<std::size_t>(mouse.y));
  const std::size_t row = history.row_of(std::round(mouse.x));
  ImGui::SetTooltip("%s\nstep %s\n%s", over.name.c_str(), exact_number(history.steps()[row]).c_str(),
                    value_text(view, history, s, layers, row).c_str());
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return state.steps.show_all();
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left))
    state.select_step(history.steps()[row], over.is_module() ? "" : over.name);
}

/// The names left of the map: a click unfolds a module or chooses a layer, with Shift it folds the module
/// that the row is in.
void react_to_names(UiState& state, NormsPanel& view) {
  const ImVec2 mouse = ImGui::GetMousePos(), plot = ImPlot::GetPlotPos(), size = ImPlot::GetPlotSize();
  const double at = ImPlot::PixelsToPlot(mouse).y;
  if (state.options.still || !ImGui::IsWindowHovered(ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) ||
      mouse.x >= plot.x || mouse.x < ImGui::GetWindowPos().x || mouse.y < plot.y ||
      mouse.y >= plot.y + size.y || at < 0 || at >= static_cast<double>(view.rows.rows().size()))
    return;
  const auto row = static_cast<std::size_t>(at);
  const LayerRows::Row& over = view.rows.rows()[row];
  ImGui::SetTooltip("%s\n%s; Shift+click folds the module that it is in", over.name.c_str(),
                    over.is_module() ? "a click unfolds it" : "a click chooses it");
  if (!ImGui::IsMouseClicked(ImGuiMouseButton_Left)) return;
  if (ImGui::GetIO().KeyShift)
    state.later.push_back([&view, row] { view.change_rows([row](LayerRows& rows) { rows.fold(row); }); });
  else if (over.is_module())
    state.later.push_back([&view, row] { view.change_rows([row](LayerRows& rows) { rows.unfold(row); }); });
  else
    state.later.push_back([&state, name = over.name] { state.session.select_layer(name); });
}

}  // namespace

const HeatMap& shown_map(UiState& state, ShownMap& shown, const History& history, Statistic s, float pixels) {
  constexpr std::size_t most = 80'000, most_moving = 24'000;  // cells per frame
  const auto [first, last] = state.steps.rows(history);
  const std::size_t layers = std::max<std::size_t>(history.layers(s).size(), 1);
  const std::uint64_t content = state.session.content();
  const bool read = shown.content != content;  // new rows of a run that is followed: the view does not move
  const bool same = !read && shown.statistic == s && shown.first == first && shown.last == last;
  const int changed = same || read ? shown.changed : ImGui::GetFrameCount();
  const bool moves = changed == ImGui::GetFrameCount() && !state.options.still;
  const auto columns = std::min(
      static_cast<std::size_t>(std::max(1.0f, pixels / 2)),
      moves ? std::max<std::size_t>(most_moving / layers, 60) : std::max<std::size_t>(most / layers, 100));
  if (!same || shown.columns != columns)
    shown = {history.heat_map(s, first, last, columns), s, first, last, columns, content, changed};
  return shown.map;
}

void NormsPanel::change_rows(const std::function<void(LayerRows&)>& change) {
  change(rows);
  layer_range.resize(rows.rows().size());
}

void draw_heat_map(UiState& state, NormsPanel& view, const History& history, Statistic s, float height) {
  const std::vector<std::string>& layers = history.layers(s);
  view.rows.fit(layers, view.search);
  LayerRange& range = view.layer_range;
  range.fit(view.rows.rows().size(), state.steps.asked());
  if (view.rows.rows().empty()) {
    ImGui::TextDisabled("no layer's name holds \"%s\"", view.search);
    ImGui::Dummy({0, height - ImGui::GetTextLineHeightWithSpacing() - ImGui::GetStyle().ItemSpacing.y});
    return;
  }
  const std::uint64_t rows_before = view.rows.version();
  const std::ptrdiff_t layer = index_of(layers, state.session.selection().layer);
  const std::ptrdiff_t chosen = view.rows.show(layer);
  if (view.rows.version() != rows_before) range.resize(view.rows.rows().size());
  range.keep_in_sight(chosen, layer);
  // Above the first row that is shown: the lane of marks.
  const double lane = lane_height() / std::max(1.0f, height - ImGui::GetFontSize() * 2.2f - lane_height());
  double low = range.from() - (range.to() - range.from()) * lane, high = range.to();
  const double low_before = low, high_before = high;
  const LockedAxes locked = locked_axes();  // as in curves
  if (ImPlot::BeginPlot("Layers by step",
                        {width_of_steps(), height - ImGui::GetStyle().ItemSpacing.y},
                        kBarePlot)) {
    ImPlot::SetupAxes(
        nullptr, nullptr, ImPlotAxisFlags_NoGridLines | locked.steps,
        ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert | ImPlotAxisFlags_NoTickMarks | locked.values);
    ImPlot::SetupAxisLinks(ImAxis_X1, &state.steps.first, &state.steps.last);
    ImPlot::SetupAxisLinks(ImAxis_Y1, &low, &high);
    row_ticks(view, chosen, height);
    ImPlot::SetupFinish();
    const HeatMap& map = shown_map(state, view.map, history, s, ImPlot::GetPlotSize().x);
    make_lines(view, ImPlot::GetPlotSize().y - lane_height());
    const CellPlaces places(history, map);
    ImPlot::PushPlotClipRect();
    draw_lines_of_cells(view, places);
    if (chosen >= 0)
      draw_chosen_row(view, places, static_cast<std::size_t>(chosen), state.steps.first, state.steps.last);
    draw_lane(map, places);
    ImPlot::PopPlotClipRect();
    draw_events(history, state.session.selection().step);
    react(state, view, history, s);
    react_to_names(state, view);
    ImPlot::EndPlot();
    if (low != low_before || high != high_before)
      range.show(box_ended() ? low : low + (high - low) * lane / (1 + lane), high);
  }
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.3f);
  scale_bar(view.drawn.colours, view.choices, state.options.still, height - ImGui::GetStyle().ItemSpacing.y);
}

}  // namespace nanquest::viewer
