/// Where a quantity is going that was measured now and then: the straight line through its last values.
#pragma once

#include <optional>
#include <span>

namespace nanquest {

/// The line through some points by ordinary least squares.
struct Trend {
  double value = 0;  ///< of the line at the last point
  double slope = 0;  ///< for each unit of x
  double error = 0;  ///< standard error of the slope: sqrt(residual variance / sum (x - mean)²), n - 2 degrees of freedom
};

/// Of at least three points with at least two different x; nothing otherwise, or where a number is not finite.
std::optional<Trend> trend_of(std::span<const double> x, std::span<const double> y);

/// How long until something that falls is used up.
struct Reach {
  double steps = 0;     ///< by the line
  double earliest = 0;  ///< with a slope steeper by two standard errors …
  double latest = 0;    ///< … and flatter: infinite if it may not fall at all
};

/// When the line reaches 0, in units of x after its last point; nothing if it does not fall. At or below 0
/// already: 0.
std::optional<Reach> reaches_zero(const Trend& trend);

}  // namespace nanquest
