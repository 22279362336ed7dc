#include "replay/cause/growth.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace nanquest {
namespace {

constexpr int kMinPoints = 8, kMinRisingPoints = 5;
constexpr std::size_t kWindows[] = {64, 16};
constexpr double kRisingShare = 0.75;

/// True for columns of "scalars" that should not grow; learning rate, scale, counters and times may.
bool should_stay(const std::string& column) {
  return column == "loss" || column.find("norm") != std::string::npos ||
         column.find("amax") != std::string::npos;
}

/// Tables of one column a layer, as the probe's history names them.
bool is_layer_table(const std::string& name) {
  return name == "grad_norm" || name == "grad_amax" || name == "weight_norm" || name == "weight_amax";
}

/// Tables that hold new values only where weights were measured.
bool is_of_weights(const std::string& name) {
  return name.starts_with("weight_");
}

double threshold_bits(const std::string& table, const std::string& column) {
  return table == "weight_norm" || column == "loss" || column.find("weight_norm") != std::string::npos ? 0.5
                                                                                                       : 1.0;
}

/// The column, one value a row; NaN where `measured` says that the row only repeats one before. An empty
/// `measured` stands for a history that measured always.
std::vector<double> column_of(const SeriesTable& table, std::size_t column,
                              const std::vector<double>& measured) {
  std::vector<double> series;
  for (std::size_t r = 0; r < table.rows(); ++r)
    series.push_back(r < measured.size() && measured[r] == 0
                         ? std::numeric_limits<double>::quiet_NaN()
                         : table.values[r * table.columns.size() + column]);
  return series;
}

/// Column "measured" of the scalars; empty if there is none.
std::vector<double> measured_rows(const SnapshotDoc& doc) {
  for (const SeriesTable& table : doc.history) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), "measured");
    if (table.name == "scalars" && found != table.columns.end())
      return column_of(table, static_cast<std::size_t>(found - table.columns.begin()), {});
  }
  return {};
}

/// What grew in the last `window` rows of `all`.
std::optional<Growth> growth_in(const std::vector<double>& all, std::size_t window, double threshold,
                                bool sparse) {
  Growth g;
  g.series.assign(all.end() - static_cast<std::ptrdiff_t>(std::min(window, all.size())), all.end());
  const Trend trend = log2_trend(g.series);
  const bool enough = trend.points >= kMinPoints
                          ? trend.rising >= kRisingShare
                          : sparse && trend.points >= kMinRisingPoints && trend.rising == 1;
  g.bits_per_step = trend.bits_per_step;
  g.bits = g.bits_per_step * static_cast<double>(g.series.size() - (g.series.empty() ? 0 : 1));
  if (!enough || g.bits < threshold) return std::nullopt;
  for (double x : g.series)
    if (std::isfinite(x) && x > 0) {
      if (g.first == 0) g.first = x;
      g.last = x;
    }
  return g;
}

/// The window of the column in which it grew most.
std::optional<Growth> growth_of(const SeriesTable& table, std::size_t column,
                                const std::vector<double>& measured) {
  const std::vector<double> all = column_of(table, column, measured);
  const double threshold = threshold_bits(table.name, table.columns[column]);
  // Too few points where there could be more: the rest lies further back.
  const bool sparse =
      !measured.empty() &&
      std::count_if(all.end() - static_cast<std::ptrdiff_t>(std::min(kWindows[0], all.size())), all.end(),
                    [](double x) { return std::isfinite(x); }) < kMinPoints;
  if (sparse) return growth_in(all, all.size(), threshold, true);
  std::optional<Growth> best;
  for (std::size_t window : kWindows)
    if (auto g = growth_in(all, window, threshold, false); g && (!best || g->bits > best->bits))
      best = std::move(g);
  return best;
}

}  // namespace

Trend log2_trend(const std::vector<double>& series) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < series.size(); ++i)
    if (std::isfinite(series[i]) && series[i] > 0)
      points.emplace_back(static_cast<double>(i), std::log2(series[i]));
  Trend trend{static_cast<int>(points.size())};
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t k = i + 1; k < points.size(); ++k)
      slopes.push_back((points[k].second - points[i].second) / (points[k].first - points[i].first));
  if (slopes.empty()) return trend;
  trend.rising =
      static_cast<double>(std::count_if(slopes.begin(), slopes.end(), [](double s) { return s > 0; })) /
      static_cast<double>(slopes.size());
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  trend.bits_per_step = *middle;
  return trend;
}

std::vector<Growth> find_growth(const SnapshotDoc& doc) {
  std::vector<Growth> found;
  const std::vector<double> measured = measured_rows(doc);
  for (const SeriesTable& table : doc.history) {
    const bool scalars = table.name == "scalars";
    if (!scalars && !is_layer_table(table.name)) continue;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (scalars && !should_stay(table.columns[column])) continue;
      auto grown = growth_of(table, column, is_of_weights(table.name) ? measured : std::vector<double>{});
      if (!grown) continue;
      grown->what = scalars ? table.columns[column] : table.name + " of " + table.columns[column];
      found.push_back(std::move(*grown));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Growth& a, const Growth& b) { return a.bits > b.bits; });
  return found;
}

}  // namespace nanquest
