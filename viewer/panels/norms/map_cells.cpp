// The cells of the map of layers: their places, their colours, and what of them is bad.
#include "viewer/panels/norms/map_cells.h"

#include <algorithm>
#include <cmath>

#include "viewer/ui/marks.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

struct Box {
  ImVec2 a, b;
};

/// A cell without a finite value is painted completely, with its mark. One with both shows the finite ones,
/// and at its bottom a share in the bad colour, at least one line: it covers no finite cell.
void draw_bad(const Box& box, const Extremes& e, std::size_t values) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const Mark mark = worst(e);
  const float width = box.b.x - box.a.x, height = box.b.y - box.a.y;
  if (e.has_finite()) {
    const float share = static_cast<float>(e.non_finite()) / static_cast<float>(values);
    const float foot = std::max(height * share, std::clamp(height * 0.34f, 1.0f, 2.0f));
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

/// Neighbours of one colour are drawn as one rectangle. `layers`: that the line is of.
void draw_line(const HeatMap& map, std::size_t line, std::size_t layers, const std::uint8_t* tints,
               const CellPlaces& places, float top, float bottom) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const HeatCell* cells = &map.at(line, 0);
  bool bad = false;
  for (std::size_t first = 0; first < map.columns;) {
    std::size_t last = first;
    bad |= cells[first].extremes.non_finite() > 0;
    if (cells[first].extremes.has_finite()) {
      while (last + 1 < map.columns && tints[last + 1] == tints[first] && places.meet(last) &&
             cells[last + 1].extremes.has_finite())
        bad |= cells[++last].extremes.non_finite() > 0;
      list.AddRectFilled({places.left(first), top}, {places.right(last), bottom}, ink_of(tints[first]));
    }
    first = last + 1;
  }
  for (std::size_t c = 0; bad && c < map.columns; ++c)
    if (cells[c].extremes.non_finite() > 0)
      draw_bad({{places.left(c), top}, {places.right(c), bottom}}, cells[c].extremes,
               (map.edges[c + 1] - map.edges[c]) * layers);
}

std::vector<std::uint8_t> tints_of(const HeatMap& map, const ColourRange& colours, CellValue value) {
  std::vector<std::uint8_t> tints;
  tints.reserve(map.cells.size());
  for (const HeatCell& cell : map.cells)
    tints.push_back(
        static_cast<std::uint8_t>(std::lround(colours.place(value_of(cell, value)) * (kTints - 1))));
  return tints;
}

}  // namespace

CellPlaces::CellPlaces(const History& history, const HeatMap& map) {
  const auto& steps = history.steps();
  for (std::size_t c = 0; c < map.columns; ++c) {
    left_.push_back(std::floor(ImPlot::PlotToPixels(steps[map.edges[c]] - 0.5, 0).x));
    right_.push_back(std::floor(ImPlot::PlotToPixels(history.end_of(map.edges[c + 1]) - 0.5, 0).x));
  }
}

void make_lines(NormsPanel& view, float pixels) {
  const HeatMap& map = view.map.map;
  const auto& rows = view.rows.rows();
  const LayerRange& range = view.layer_range;
  ShownLines& drawn = view.drawn;
  const double shown = std::max(1.0, range.to() - range.from());
  const auto per_line = static_cast<std::size_t>(std::max(1.0, std::floor(shown / std::max(1.0f, pixels))));
  std::string key;
  for (const std::uint64_t part : {view.map.content, static_cast<std::uint64_t>(view.map.statistic),
                                   std::uint64_t{view.map.first}, std::uint64_t{view.map.last},
                                   std::uint64_t{map.columns}, view.rows.version(), std::uint64_t{per_line}})
    key += std::to_string(part) + ' ';
  key += std::to_string(range.from()) + ' ' + std::to_string(range.to()) + ' ' +
         std::to_string(view.choices.cut) + ' ' + std::to_string(static_cast<int>(view.choices.value));
  if (key == drawn.of) return;
  drawn.of = std::move(key);
  drawn.rows_per_line = per_line;
  std::vector<std::vector<std::uint32_t>> lines;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (row % per_line == 0) lines.emplace_back();
    lines.back().insert(lines.back().end(), rows[row].layers.begin(), rows[row].layers.end());
  }
  drawn.cells = folded(map, lines);
  drawn.layers.clear();
  for (const std::vector<std::uint32_t>& line : lines) drawn.layers.push_back(line.size());
  const auto from = static_cast<std::size_t>(range.from()) / per_line;
  const auto to = (static_cast<std::size_t>(std::ceil(range.to())) + per_line - 1) / per_line;
  drawn.colours = colour_range(drawn.cells, from, to, view.choices.value, view.choices.cut);
  drawn.tints = tints_of(drawn.cells, drawn.colours, view.choices.value);
}

void draw_lines_of_cells(const NormsPanel& view, const CellPlaces& places) {
  const ShownLines& drawn = view.drawn;
  const LayerRange& range = view.layer_range;
  const std::size_t rows = view.rows.rows().size(), per_line = drawn.rows_per_line;
  const auto from = static_cast<std::size_t>(range.from()) / per_line;
  const std::size_t to = std::min((static_cast<std::size_t>(std::ceil(range.to())) + per_line - 1) / per_line,
                                  drawn.cells.layers);
  // Whole pixels, so that neighbours meet without a gap.
  const auto y_of = [](std::size_t row) {
    return std::floor(ImPlot::PlotToPixels(0, static_cast<double>(row)).y);
  };
  for (std::size_t line = from; line < to && drawn.cells.columns > 0; ++line)
    draw_line(drawn.cells, line, drawn.layers[line], &drawn.tints[line * drawn.cells.columns], places,
              y_of(line * per_line), y_of(std::min((line + 1) * per_line, rows)));
}

void draw_chosen_row(const NormsPanel& view, const CellPlaces& places, std::size_t row, double first,
                     double last) {
  const auto y_of = [](double at) { return ImPlot::PlotToPixels(0, at).y; };
  const double at = static_cast<double>(row);
  const float least = std::max(3.0f, std::floor(ImGui::GetFontSize() * 0.25f));
  float top = std::floor(y_of(at)), bottom = std::floor(y_of(at + 1));
  if (bottom - top < least) {
    const HeatMap own = folded(view.map.map, {view.rows.rows()[row].layers});
    top = std::floor((y_of(at) + y_of(at + 1) - least) / 2);
    bottom = top + least;
    if (own.columns > 0)
      draw_line(own, 0, view.rows.rows()[row].layers.size(),
                tints_of(own, view.drawn.colours, view.choices.value).data(), places, top, bottom);
  }
  ImPlot::GetPlotDrawList()->AddRect({ImPlot::PlotToPixels(first, 0).x, top},
                                     {ImPlot::PlotToPixels(last, 0).x, bottom}, faint(colour().strong, 0.86f),
                                     0, 1.5f);
}

/// Pixels above the first layer, for marks that are wider than a step.
float lane_height() {
  return ImGui::GetFontSize() * 1.05f;
}

/// A mark in the lane above every column that holds something bad: one bad step among a million is visible.
void draw_lane(const HeatMap& map, const CellPlaces& places) {
  ImDrawList& list = *ImPlot::GetPlotDrawList();
  const float r = ImGui::GetFontSize() * 0.28f, y = ImPlot::GetPlotPos().y + r * 1.8f;
  for (std::size_t column = 0; column < map.columns; ++column)
    if (const Extremes& all = map.all[column]; all.non_finite() > 0)
      draw_mark(list, {places.middle(column), y}, r, worst(all));
}

}  // namespace nanquest::viewer
