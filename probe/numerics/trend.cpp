#include "probe/numerics/trend.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nanquest {

std::optional<Trend> trend_of(std::span<const double> x, std::span<const double> y) {
  const std::size_t n = std::min(x.size(), y.size());
  if (n < 3) return std::nullopt;
  double mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < n; ++i) {
    mean_x += x[i] / static_cast<double>(n);
    mean_y += y[i] / static_cast<double>(n);
  }
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    xy += dx * dy;
    yy += dy * dy;
  }
  if (!(xx > 0) || !std::isfinite(xx) || !std::isfinite(xy) || !std::isfinite(yy)) return std::nullopt;
  Trend trend;
  trend.slope = xy / xx;
  trend.value = mean_y + trend.slope * (x[n - 1] - mean_x);
  const double residual = std::max(0.0, yy - trend.slope * xy);
  trend.error = std::sqrt(residual / static_cast<double>(n - 2) / xx);
  return trend;
}

std::optional<Reach> reaches_zero(const Trend& trend) {
  if (trend.value <= 0) return Reach{};
  if (!(trend.slope < 0)) return std::nullopt;
  const double flat = trend.slope + 2 * trend.error;
  return Reach{-trend.value / trend.slope, -trend.value / (trend.slope - 2 * trend.error),
               flat < 0 ? -trend.value / flat : std::numeric_limits<double>::infinity()};
}

}  // namespace nanquest
