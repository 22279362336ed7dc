#include "viewer/model/smoothing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {

Pyramid smoothed(const Pyramid& values, double weight) {
  std::vector<double> out(values.size());
  double mean = 0, weights = 0;  // of the values so far
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double value = values[i];
    out[i] = value;
    if (!std::isfinite(value)) continue;
    weights = weights * weight + 1;
    mean += (value - mean) / weights;
    out[i] = mean;
  }
  return Pyramid(std::move(out));
}

double smoothing_after(double now, int by) {
  constexpr double steps[] = {0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, kMostSmoothing};
  if (by > 0) {
    const auto* const above = std::ranges::upper_bound(steps, now);
    return above == std::end(steps) ? kMostSmoothing : *above;
  }
  const auto* const at = std::ranges::lower_bound(steps, now);
  return at == std::begin(steps) ? 0 : *(at - 1);
}

std::string smoothing_text(double weight) {
  return "exponential moving average, weight " + short_number(weight);
}

}  // namespace nanquest::viewer
