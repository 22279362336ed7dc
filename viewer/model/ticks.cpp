#include "viewer/model/ticks.h"

#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace nanquest::viewer {
namespace {

constexpr std::size_t kFew = 3;

/// The double that the shortest decimal of so many digits reads as: 0.6 for 3 * 0.2.
double rounded(double value) {
  return std::strtod(fmt::format("{:.10g}", value).c_str(), nullptr);
}

/// 1, 2 or 5 times a power of ten, the nearest to `value`.
double round_step(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value))), share = value / power;
  return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

std::vector<double> multiples(double step, double low, double high) {
  std::vector<double> out;
  for (double i = std::ceil(low / step); i * step <= high; ++i) out.push_back(rounded(i * step) + 0.0);  // no -0
  return out;
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, std::size_t most) {
  std::vector<double> out;
  if (!(high > low) || !std::isfinite(low) || !std::isfinite(high) || most == 0) return out;
  const double span = high - low;
  for (double wanted = span / static_cast<double>(most + 1); wanted <= span * 2; wanted *= 1.5)
    if (out = multiples(round_step(wanted), low, high); !out.empty() && out.size() <= most) return out;
  return {};  // nothing round lies between
}

std::vector<double> log_ticks(double low, double high, std::size_t most) {
  std::vector<double> out;
  if (!(low > 0) || !(high > low) || !std::isfinite(high) || high >= 100 * low || most < 2) return out;
  for (int decade = static_cast<int>(std::floor(std::log10(low))); std::pow(10.0, decade) <= high; ++decade)
    for (const int factor : {1, 2, 5})
      if (const double tick = rounded(factor * std::pow(10.0, decade)); tick >= low && tick <= high)
        out.push_back(tick);
  if (out.size() < kFew) out = multiples(round_step((high - low) / 4), low, high);
  if (out.size() <= most) return out;
  const std::size_t stride = (out.size() + most - 1) / most;
  std::vector<double> fewer;
  for (std::size_t i = 0; i < out.size(); i += stride) fewer.push_back(out[i]);
  return fewer;
}

}  // namespace nanquest::viewer
