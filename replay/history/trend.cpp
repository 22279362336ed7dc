#include "replay/history/trend.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace nanquest {
namespace {

/// The share of all orders of `n` numbers in which at least `rising` pairs rise. Inserting the k-th number
/// adds 0 … k - 1 rising pairs, each equally likely.
double chance_of_rising(std::size_t n, std::size_t rising) {
  std::vector<double> share = {1};  // by the number of rising pairs
  for (std::size_t k = 2; k <= n; ++k) {
    std::vector<double> next(share.size() + k - 1, 0);
    for (std::size_t pairs = 0; pairs < share.size(); ++pairs)
      for (std::size_t more = 0; more < k; ++more)
        next[pairs + more] += share[pairs] / static_cast<double>(k);
    share = std::move(next);
  }
  double sum = 0;
  for (std::size_t pairs = share.size(); pairs-- > std::min(rising, share.size());) sum += share[pairs];
  return std::min(1.0, sum);
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
  const auto rising = std::count_if(slopes.begin(), slopes.end(), [](double s) { return s > 0; });
  trend.rising = static_cast<double>(rising) / static_cast<double>(slopes.size());
  trend.chance = chance_of_rising(points.size(), static_cast<std::size_t>(rising));
  const auto middle = slopes.begin() + static_cast<std::ptrdiff_t>(slopes.size() / 2);
  std::nth_element(slopes.begin(), middle, slopes.end());
  trend.bits_per_step = *middle;
  return trend;
}

std::optional<std::size_t> first_jump(const std::vector<double>& series) {
  constexpr double kJump = 8;
  constexpr std::size_t kBefore = 16, kFewest = 4;
  for (std::size_t i = kFewest; i < series.size(); ++i) {
    double largest = 0;
    std::size_t known = 0;
    for (std::size_t k = i - std::min(i, kBefore); k < i; ++k)
      if (std::isfinite(series[k]) && series[k] > 0) largest = std::max(largest, series[k]), ++known;
    if (known >= kFewest && std::isfinite(series[i]) && series[i] > kJump * largest) return i;
  }
  return std::nullopt;
}

double largest_that_counts(std::vector<double> chances, double share) {
  std::sort(chances.begin(), chances.end());
  for (std::size_t i = chances.size(); i-- > 0;)
    if (chances[i] <= share * static_cast<double>(i + 1) / static_cast<double>(chances.size()))
      return chances[i];
  return -1;
}

}  // namespace nanquest
