#include "viewer/model/map_colours.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nanquest::viewer {

HeatMap folded(const HeatMap& map, const std::vector<std::vector<std::uint32_t>>& lines) {
  HeatMap out;
  out.layers = lines.size();
  out.columns = map.columns;
  out.edges = map.edges;
  out.all = map.all;
  out.cells.resize(out.layers * out.columns);
  for (std::size_t line = 0; line < lines.size(); ++line)
    for (const std::uint32_t layer : lines[line])
      for (std::size_t c = 0; c < map.columns && layer < map.layers; ++c)
        out.cells[line * out.columns + c].extremes.add(map.at(layer, c).extremes);
  return out;
}

double ColourRange::place(double value) const {
  if (!(value > low)) return 0;
  return std::min(1.0, std::log(value / low) * factor);
}

double value_of(const HeatCell& cell, CellValue value) {
  if (!cell.extremes.has_finite()) return std::numeric_limits<double>::quiet_NaN();
  return value == CellValue::largest ? cell.extremes.max : cell.extremes.min;
}

ColourRange colour_range(const HeatMap& lines, std::size_t from, std::size_t to, CellValue value,
                         double cut) {
  std::vector<double> seen;
  to = std::min(to, lines.layers);
  for (std::size_t line = from; line < to; ++line)
    for (std::size_t c = 0; c < lines.columns; ++c)
      if (const double v = value_of(lines.at(line, c), value); v > 0) seen.push_back(v);
  if (seen.empty()) return {};
  const auto percentile = [&](double percent) {
    const auto rank =
        static_cast<std::ptrdiff_t>(std::llround(percent / 100 * static_cast<double>(seen.size() - 1)));
    std::ranges::nth_element(seen, seen.begin() + rank);
    return seen[static_cast<std::size_t>(rank)];
  };
  const double share = std::clamp(cut, 0.0, 45.0);
  ColourRange range{percentile(share), percentile(100 - share), 1, true};
  constexpr double kLeast = 1.0023;  // a thousandth of a power of ten: one value has a colour too
  if (!(range.high > range.low * kLeast)) range.high = range.low * kLeast;
  range.factor = 1 / std::log(range.high / range.low);
  return range;
}

}  // namespace nanquest::viewer
