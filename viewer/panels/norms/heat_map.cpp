#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "viewer/model/numbers.h"
#include "viewer/panels/norms/plots.h"
#include "viewer/ui/curves.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

/// Colours by the logarithm between the smallest positive and the largest value.
struct LogScale {
  double low = 0, high = 1;
  double factor = 1, offset = 0;
  bool any = false;  ///< there is a value > 0
  LogScale(const History& history, Statistic s) {
    const Extremes all = history.extremes(s, 0, history.rows());
    const double foot = history.smallest_positive(s);
    any = foot > 0;
    low = foot > 0 ? std::log10(foot) : -1;
    high = all.has_finite() && all.max > 0 ? std::log10(all.max) : low + 1;
    low = std::max(low, high - 9);  // a few exact zeros must not flatten everything else
    if (high - low < 1e-3) high = low + 1e-3;
    constexpr double tens = 0.30102999566398120;  // log10(2): log2 is faster
    factor = tens / (high - low);
    offset = low / (high - low);
  }
  double at(double value) const { return value > 0 ? std::log2(value) * factor - offset : 0; }
};

void scale_bar(const LogScale& scale, float height) {
  const float em = ImGui::GetFontSize();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::Dummy({em * 4, height});
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
  for (int i = 0; i <= (scale.any ? 2 : 0); ++i) {
    const double value = scale.any ? std::pow(10.0, scale.low + (scale.high - scale.low) * i / 2) : 0;
    const std::string text = fmt::format("{:.2g}", value);
    const float y = bottom - (bottom - top) * static_cast<float>(i) / 2 - em * 0.5f;
    list.AddText({at.x + em * 0.95f, y}, ImGui::GetColorU32(ImGuiCol_TextDisabled), text.c_str());
  }
}

/// Where a layer stands; -1 if it is not there.
std::ptrdiff_t index_of(const std::vector<std::string>& layers, const std::string& name) {
  const auto found = std::ranges::find(layers, name);
  return found == layers.end() ? -1 : found - layers.begin();
}

/// Names of the shown layers as ticks, thinned out where rows are lower than the text; that of the selected
/// one always.
void layer_ticks(const std::vector<std::string>& layers, std::ptrdiff_t selected, const LayerRange& range,
                 float height) {
  const double room = std::max(1.0f, height - ImGui::GetFontSize() * 3);
  const double least = (range.to() - range.from()) * static_cast<double>(ImGui::GetFontSize()) / room;
  const auto every = static_cast<std::ptrdiff_t>(std::max(1.0, std::ceil(least)));
  std::vector<double> at;
  std::vector<std::string> names;
  std::vector<const char*> labels;
  const auto add = [&](std::ptrdiff_t i) {
    const std::string& name = layers[static_cast<std::size_t>(i)];
    at.push_back(static_cast<double>(i) + 0.5);
    names.push_back(name.size() > 26 ? "..." + name.substr(name.size() - 24) : name);
  };
  const auto first = static_cast<std::ptrdiff_t>(range.from());
  const auto last = std::min(static_cast<std::ptrdiff_t>(std::ceil(range.to())), std::ssize(layers));
  for (std::ptrdiff_t i = first; i < last; i += every)
    if (selected < 0 || std::abs(i - selected) >= every) add(i);
  if (selected >= first && selected < last) add(selected);
  labels.reserve(names.size());
  for (const std::string& name : names) labels.push_back(name.c_str());
  ImPlot::SetupAxisTicks(ImAxis_Y1, at.data(), static_cast<int>(at.size()), labels.data());
}

struct Box {
  ImVec2 a, b;
};

/// Positions of a map's columns and layers, in whole pixels, so that neighbours meet without a gap.
class Places {
 public:
  Places(const History& history, const HeatMap& map) {
    const auto& steps = history.steps();
    for (std::size_t c = 0; c < map.columns; ++c) {
      left_.push_back(std::floor(ImPlot::PlotToPixels(steps[map.edges[c]] - 0.5, 0).x));
      right_.push_back(std::floor(ImPlot::PlotToPixels(history.end_of(map.edges[c + 1]) - 0.5, 0).x));
    }
    for (std::size_t layer = 0; layer <= map.layers; ++layer)
      top_.push_back(std::floor(ImPlot::PlotToPixels(0, static_cast<double>(layer)).y));
  }
  /// Columns [first, last] of a layer.
  Box box(std::size_t layer, std::size_t first, std::size_t last) const {
    return {{left_[first], top_[layer]}, {right_[last], top_[layer + 1]}};
  }
  bool meet(std::size_t column) const { return right_[column] == left_[column + 1]; }
  float middle(std::size_t column) const { return (left_[column] + right_[column]) / 2; }

 private:
  std::vector<float> left_, right_, top_;
};

/// A cell without a finite value is painted completely, with its mark. One with both shows the finite ones,
/// and at its bottom a share in the bad colour, at least one line: it covers no finite cell.
void draw_bad(const Box& box, const Extremes& e, std::size_t rows) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const Mark mark = worst(e);
  const float width = box.b.x - box.a.x, height = box.b.y - box.a.y;
  if (e.has_finite()) {
    const float share = static_cast<float>(e.non_finite()) / static_cast<float>(rows);
    const float foot = std::max(height * share, std::min(2.0f, height * 0.34f));
    return list.AddRectFilled({box.a.x, box.b.y - foot}, box.b, mark_colour(mark));
  }
  list.AddRectFilled(box.a, {std::max(box.b.x, box.a.x + 1), box.b.y}, mark_colour(mark));
  const float r = std::min({width * 0.3f, height * 0.3f, ImGui::GetFontSize() * 0.3f});
  if (r < 2) return;
  draw_shape(list, {(box.a.x + box.b.x) / 2, (box.a.y + box.b.y) / 2}, r, mark,
             ImGui::GetColorU32(colour().on_mark));
}

constexpr int kTints = 256;

/// viridis in as many steps as a colour channel has.
ImU32 ink_of(std::uint8_t tint) {
  static const std::vector<ImU32> inks = [] {
    std::vector<ImU32> all;
    all.reserve(static_cast<std::size_t>(kTints));
    for (int i = 0; i < kTints; ++i) all.push_back(viridis(static_cast<double>(i) / (kTints - 1)));
    return all;
  }();
  return inks[tint];
}

std::vector<std::uint8_t> tints_of(const HeatMap& map, const LogScale& scale) {
  std::vector<std::uint8_t> tints;
  tints.reserve(map.cells.size());
  for (const HeatCell& cell : map.cells) {
    const double t = cell.extremes.has_finite() ? std::clamp(scale.at(cell.extremes.max), 0.0, 1.0) : 0;
    tints.push_back(static_cast<std::uint8_t>(std::lround(t * (kTints - 1))));
  }
  return tints;
}

/// Neighbours of one colour are drawn as one rectangle.
void draw_cells(const ShownMap& shown, const Places& places, const LayerRange& range) {
  const HeatMap& map = shown.map;
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const auto from = static_cast<std::size_t>(range.from());
  const std::size_t to = std::min(static_cast<std::size_t>(std::ceil(range.to())), map.layers);
  for (std::size_t layer = from; layer < to; ++layer) {
    const HeatCell* cells = &map.at(layer, 0);
    const std::uint8_t* tints = &shown.tints[layer * map.columns];
    bool bad = false;
    for (std::size_t first = 0; first < map.columns;) {
      std::size_t last = first;
      bad |= cells[first].extremes.non_finite() > 0;
      if (cells[first].extremes.has_finite()) {
        while (last + 1 < map.columns && tints[last + 1] == tints[first] && places.meet(last) &&
               cells[last + 1].extremes.has_finite())
          bad |= cells[++last].extremes.non_finite() > 0;
        const Box box = places.box(layer, first, last);
        list.AddRectFilled(box.a, box.b, ink_of(tints[first]));
      }
      first = last + 1;
    }
    for (std::size_t c = 0; bad && c < map.columns; ++c)
      if (cells[c].extremes.non_finite() > 0)
        draw_bad(places.box(layer, c, c), cells[c].extremes, map.edges[c + 1] - map.edges[c]);
  }
}

/// Pixels above the first layer, for marks that are wider than a step.
float lane_height() {
  return ImGui::GetFontSize() * 1.05f;
}

/// A mark in the lane above every column that holds something bad: one bad step among a million is visible.
void draw_lane(const HeatMap& map, const Places& places) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const float r = ImGui::GetFontSize() * 0.28f, y = ImPlot::GetPlotPos().y + r * 1.8f;
  for (std::size_t column = 0; column < map.columns; ++column)
    if (const Extremes& all = map.all[column]; all.non_finite() > 0)
      draw_mark(list, {places.middle(column), y}, r, worst(all));
}

void react(UiState& state, const History& history, Statistic s, const HeatMap& map) {
  if (state.options.still || !ImPlot::IsPlotHovered()) return;
  const ImPlotPoint mouse = ImPlot::GetPlotMousePos();
  if (mouse.y < 0 || mouse.y >= static_cast<double>(map.layers) || map.columns == 0) return;
  const auto layer = static_cast<std::size_t>(mouse.y);
  const std::size_t row = history.row_of(std::round(mouse.x));
  const std::string name = history.layers(s)[layer];
  ImGui::SetTooltip("%s\nstep %s\n%s %s", name.c_str(), exact_number(history.steps()[row]).c_str(),
                    statistic_title(s), short_number(history.series(s, layer)[row]).c_str());
  if (ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) return state.steps.show_all();
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) state.select_step(history.steps()[row], name);
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
  if (!same || shown.columns != columns) {
    shown = {history.heat_map(s, first, last, columns), {}, s, first, last, columns, content, changed};
    shown.tints = tints_of(shown.map, LogScale(history, s));
  }
  return shown.map;
}

void draw_heat_map(UiState& state, NormsPanel& view, const History& history, Statistic s, float height) {
  const LogScale scale(history, s);
  const float bar = ImGui::GetFontSize() * 4.6f;
  const std::vector<std::string>& layers = history.layers(s);
  const std::ptrdiff_t selected = index_of(layers, state.session.selection().layer);
  LayerRange& range = view.layer_range;
  range.fit(layers.size(), state.steps.asked());
  range.keep_in_sight(selected);
  // Above the first layer that is shown: the lane of marks.
  const double lane = lane_height() / std::max(1.0f, height - ImGui::GetFontSize() * 2.2f - lane_height());
  double low = range.from() - (range.to() - range.from()) * lane, high = range.to();
  const double low_before = low, high_before = high;
  const bool zooms_layers = ImGui::GetIO().KeyCtrl;  // as in curves: steps or values, never both
  if (ImPlot::BeginPlot("Layers by step",
                        {ImGui::GetContentRegionAvail().x - bar, height - ImGui::GetStyle().ItemSpacing.y},
                        kBarePlot)) {
    ImPlot::SetupAxes(nullptr, nullptr,
                      ImPlotAxisFlags_NoGridLines | (zooms_layers ? ImPlotAxisFlags_Lock : 0),
                      ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_Invert | ImPlotAxisFlags_NoTickMarks |
                          (zooms_layers ? 0 : ImPlotAxisFlags_Lock));
    ImPlot::SetupAxisLinks(ImAxis_X1, &state.steps.first, &state.steps.last);
    ImPlot::SetupAxisLinks(ImAxis_Y1, &low, &high);
    layer_ticks(layers, selected, range, height);
    ImPlot::SetupFinish();
    const HeatMap& map = shown_map(state, view.map, history, s, ImPlot::GetPlotSize().x);
    const Places places(history, map);
    ImPlot::PushPlotClipRect();
    draw_cells(view.map, places, range);
    if (selected >= 0) {
      const double at = static_cast<double>(selected);
      ImPlot::GetPlotDrawList()->AddRect(ImPlot::PlotToPixels(state.steps.first, at),
                                         ImPlot::PlotToPixels(state.steps.last, at + 1),
                                         faint(colour().strong, 0.86f), 0, 1.5f);
    }
    draw_lane(map, places);
    ImPlot::PopPlotClipRect();
    draw_events(history, state.session.selection().step);
    react(state, history, s, map);
    ImPlot::EndPlot();
    if (low != low_before || high != high_before) range.show(low + (high - low) * lane / (1 + lane), high);
  }
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.3f);
  scale_bar(scale, height - ImGui::GetStyle().ItemSpacing.y);
}

}  // namespace nanquest::viewer
