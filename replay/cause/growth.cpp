#include "replay/cause/growth.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace nanquest {
namespace {

constexpr std::size_t kMinPoints = 8;
constexpr std::size_t kWindows[] = {64, 16};
constexpr double kRisingShare = 0.75;

/// True for columns of "scalars" that should not grow; learning rate, scale, counters and times may.
bool should_stay(const std::string& column) {
  return column == "loss" || column.find("norm") != std::string::npos ||
         column.find("amax") != std::string::npos;
}

double threshold_bits(const std::string& table, const std::string& column) {
  return table == "weight_norm" || column == "loss" || column.find("weight_norm") != std::string::npos ? 0.5
                                                                                                       : 1.0;
}

std::vector<double> last_rows(const SeriesTable& table, std::size_t column, std::size_t window) {
  std::vector<double> series;
  const std::size_t rows = table.rows();
  for (std::size_t r = rows > window ? rows - window : 0; r < rows; ++r)
    series.push_back(table.values[r * table.columns.size() + column]);
  return series;
}

std::optional<Growth> growth_of(const SeriesTable& table, std::size_t column, std::size_t window) {
  Growth g;
  g.series = last_rows(table, column, window);
  double rising = 0;
  g.bits_per_step = log2_slope(g.series, &rising);
  g.bits = g.bits_per_step * static_cast<double>(g.series.size() - (g.series.empty() ? 0 : 1));
  if (rising < kRisingShare || g.bits < threshold_bits(table.name, table.columns[column]))
    return std::nullopt;
  for (double x : g.series)
    if (std::isfinite(x) && x > 0) {
      if (g.first == 0) g.first = x;
      g.last = x;
    }
  g.what = table.name == "scalars" ? table.columns[column] : table.name + " of " + table.columns[column];
  return g;
}

}  // namespace

double log2_slope(const std::vector<double>& series, double* rising) {
  if (rising) *rising = 0;
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < series.size(); ++i)
    if (std::isfinite(series[i]) && series[i] > 0)
      points.emplace_back(static_cast<double>(i), std::log2(series[i]));
  if (points.size() < kMinPoints) return 0;
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t k = i + 1; k < points.size(); ++k)
      slopes.push_back((points[k].second - points[i].second) / (points[k].first - points[i].first));
  if (rising)
    *rising =
        static_cast<double>(std::count_if(slopes.begin(), slopes.end(), [](double s) { return s > 0; })) /
        static_cast<double>(slopes.size());
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  return *middle;
}

std::vector<Growth> find_growth(const SnapshotDoc& doc) {
  std::vector<Growth> found;
  for (const SeriesTable& table : doc.history) {
    const bool scalars = table.name == "scalars";
    if (!scalars && table.name != "grad_norm" && table.name != "weight_norm" && table.name != "amax")
      continue;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (scalars && !should_stay(table.columns[column])) continue;
      std::optional<Growth> best;
      for (std::size_t window : kWindows)
        if (auto g = growth_of(table, column, window); g && (!best || g->bits > best->bits))
          best = std::move(g);
      if (best) found.push_back(std::move(*best));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Growth& a, const Growth& b) { return a.bits > b.bits; });
  return found;
}

}  // namespace nanquest
