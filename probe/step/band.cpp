#include "probe/step/band.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace nanquest {
namespace {

constexpr double kDeviation = 1.4826;  // of a normal distribution, in median absolute deviations

/// Upper median; reorders `values`.
double median(std::span<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

bool Band::by_logarithm() const {
  return std::all_of(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(kept()),
                     [](double v) { return v > 0; });
}

double Band::scaled(double value, bool logarithm) const {
  if (!logarithm) return value;
  return value > 0 ? std::log(value) : -std::numeric_limits<double>::infinity();
}

Band::Fit Band::fit(bool logarithm) const {
  const std::size_t n = count(), half = n / 2;
  Values ordered, scratch;
  for (std::size_t i = 0; i < n; ++i) ordered[i] = scaled(recent(i), logarithm);
  const auto median_of = [&](std::size_t from, std::size_t size) {
    std::copy_n(ordered.begin() + static_cast<std::ptrdiff_t>(from), size, scratch.begin());
    return median({scratch.data(), size});
  };
  const double middle = median_of(0, n);
  const double slope = (median_of(half, n - half) - median_of(0, half)) / static_cast<double>(half);
  const auto residual = [&](std::size_t i, double per_step) {
    return ordered[i] - middle - per_step * (static_cast<double>(i) - static_cast<double>(n - 1) / 2);
  };
  const auto spread_around = [&](double per_step) {
    for (std::size_t i = 0; i < n; ++i) scratch[i] = std::abs(residual(i, per_step));
    return kDeviation * median({scratch.data(), n});
  };
  const double flat = spread_around(0), sloped = spread_around(slope);
  const bool trend = sloped < 0.7 * flat;
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, residual(i, trend ? slope : 0));
  Fit found{.middle = middle, .spread = trend ? sloped : flat};
  // Where a trend has brought it. A curve that falls more and more slowly lies above its line.
  if (trend) found.middle = median_of(n - n / 4, n / 4) + std::max(slope, 0.0) * static_cast<double>(n) / 8;
  const double material = logarithm ? std::log(ratio_) : (ratio_ - 1) * std::abs(middle);
  found.edge = std::max({kDeviations * found.spread, kTail * largest, material});
  if (taken_ < remembered_until_ && remembered_by_logarithm_ == logarithm)
    found.edge = std::max(found.edge, kLarger * remembered_);
  return found;
}

double Band::above(double value) const {
  if (!known() || !std::isfinite(value)) return 0;
  for (std::size_t i = 0; i < count(); ++i)
    if (value <= recent(i)) return 0;
  const bool logarithm = by_logarithm();
  const Fit band = fit(logarithm);
  const double distance = scaled(value, logarithm) - band.middle;
  if (distance <= 0) return 0;
  return band.edge > 0 ? distance / band.edge : std::numeric_limits<double>::infinity();
}

void Band::take(double value) {
  if (std::isfinite(value)) values_[taken_++ % kWindow] = value;
}

void Band::came_back(double distance) {
  if (!known() || !std::isfinite(distance)) return;
  const bool logarithm = by_logarithm();
  remembered_ = distance * fit(logarithm).edge;
  remembered_by_logarithm_ = logarithm;
  remembered_until_ = taken_ + kRemembers;
}

void Band::forget() {
  *this = Band(ratio_);
}

std::optional<Band::Range> Band::range() const {
  if (!known()) return std::nullopt;
  const bool logarithm = by_logarithm();
  const Fit band = fit(logarithm);
  const auto back = [&](double y) { return logarithm ? std::exp(y) : y; };
  return Range{back(band.middle - 2 * band.spread), back(band.middle), back(band.middle + 2 * band.spread),
               back(band.middle + kBack * band.edge), back(band.middle + band.edge)};
}

}  // namespace nanquest
