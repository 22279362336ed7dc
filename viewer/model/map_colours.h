/// The map of layers as it is coloured: several layers as one line of cells, and the range of the colours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "viewer/model/history.h"

namespace nanquest::viewer {

/// The value that a cell is coloured by, of all steps and layers that it stands for.
enum class CellValue : std::uint8_t { largest, smallest };

/// The cells of these layers as one line each, in this order: the extremes of all of them.
HeatMap folded(const HeatMap& map, const std::vector<std::vector<std::uint32_t>>& lines);

/// A logarithmic range of colours.
struct ColourRange {
  double low = 0, high = 1;  ///< values at its ends
  double factor = 1;         ///< 1 / log(high / low)
  bool any = false;          ///< false: there is no value > 0
  /// 0 … 1; values beyond the ends are at them, and those that are not above 0 at the lower one.
  double place(double value) const;
};

/// From the `cut`th to the (100 - cut)th percentile of the values > 0 in lines [from, to), so that a few
/// extreme cells do not make all others one colour. `cut`: 0 … 45; 0: from the smallest to the largest.
ColourRange colour_range(const HeatMap& lines, std::size_t from, std::size_t to, CellValue value, double cut);

/// The value of a cell; NaN if nothing of it is finite.
double value_of(const HeatCell& cell, CellValue value);

}  // namespace nanquest::viewer
