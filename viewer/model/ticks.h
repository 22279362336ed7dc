/// Values to name on an axis.
#pragma once

#include <cstddef>
#include <vector>

namespace nanquest::viewer {

/// Round values in [low, high], ascending: 1, 2 and 5 of every decade, or evenly spaced ones where fewer than
/// three of these lie between; at most `most` (2 or more). None if `high` is 100 times `low` or more (powers
/// of ten are enough then), and for anything but 0 < low < high.
std::vector<double> log_ticks(double low, double high, std::size_t most);

/// Evenly spaced round values in [low, high], ascending, at most `most` (1 or more). None for anything but
/// finite low < high, and where so few round ones do not lie between.
std::vector<double> linear_ticks(double low, double high, std::size_t most);

}  // namespace nanquest::viewer
