/// run/ranges.r0.h5: how far the values of every place of a program reached, at the watched steps. A file
/// like a series (series.h): it can be read while the run continues.
///
/// Tables with one row per step: "steps" (one column, "step"), and the five below with one column per place
/// ("aten::bmm in blocks.3.attention (forward, float16)"); NaN for a place that did not run in that step.
#pragma once

#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

/// In this order: largest finite |x|; bits left to the end of the format, log2(largest finite value / amax);
/// shares of elements that are 0 and that are subnormal; number of elements that are NaN or Inf.
inline constexpr const char* kRangeTables[] = {"amax", "headroom", "zero", "subnormal", "non_finite"};

/// The history of one place, oldest first; steps in which it did not run are left out.
struct PlaceRanges {
  std::string place;
  std::vector<double> steps, amax, headroom;
  std::vector<double> zero, subnormal;  ///< shares, 0 … 1; empty if the file has none
};

/// Reads the file, also while it is being written. `bad_file` if it is not a ranges file.
Result<std::vector<PlaceRanges>> read_ranges(const std::string& path);

}  // namespace nanquest
