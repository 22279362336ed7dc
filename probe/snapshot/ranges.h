/// run/ranges.r0.h5: how far the values of every place of a program reached, at the steps that were looked at
/// whole. A file like a series (series.h): it can be read while the run goes on.
///
/// Tables, one row a step: "steps" (one column, "step"), and with a column a place ("aten::bmm in
/// blocks.3.attention (forward, float16)") the five below; NaN for a place that did not run in that step.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// Largest finite |x|; bits left to the end of the format, log2(largest finite value / amax); shares of the
/// elements that are 0 and that are subnormal; elements that are NaN or Inf. In this order.
inline constexpr const char* kRangeTables[] = {"amax", "headroom", "zero", "subnormal", "non_finite"};

/// What one place showed, oldest first; steps in which it did not run are left out.
struct PlaceRanges {
  std::string place;
  std::vector<double> steps, amax, headroom;
  std::vector<double> zero, subnormal;  ///< shares, 0 … 1; empty where the file has none
};

/// Reads the file, also while it is being written. `bad_file` if it is none of these.
Result<std::vector<PlaceRanges>> read_ranges(const std::string& path);

}  // namespace nanquest
