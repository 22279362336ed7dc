/// Extrapolation of a quantity that is measured now and then: the straight line through its last values.
#pragma once

#include <optional>
#include <span>

namespace nanquest {

/// A line through points by ordinary least squares.
struct Trend {
  double value = 0;  ///< of the line at the last point
  double slope = 0;  ///< per unit of x
  double error = 0;  ///< standard error of the slope: sqrt(residual variance / sum (x - mean)²), n - 2 degrees of freedom
};

/// From at least three points with at least two different x; nothing otherwise, or if a number is not finite.
std::optional<Trend> trend_of(std::span<const double> x, std::span<const double> y);

/// The time until a falling quantity reaches 0.
struct Reach {
  double steps = 0;     ///< on the line
  double earliest = 0;  ///< with a slope steeper by two standard errors …
  double latest = 0;    ///< … and flatter: infinite if it may not fall at all
};

/// When the line reaches 0, in units of x after its last point; nothing if it does not fall. 0 if it is
/// already at or below 0.
std::optional<Reach> reaches_zero(const Trend& trend);

}  // namespace nanquest
