/// Where a `.replay.h5` holds what: the runs of the step as recorded, in fp32 and in fp64, by op, and the
/// values that the culprit read and wrote in each of them. Written by replay/cli, read by the viewer.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace nanquest {

/// The runs that the file tells of, in this order. The first is the step as it was recorded.
inline constexpr std::array<const char*, 3> kReplayedRuns = {"as_recorded", "fp32", "fp64"};

/// A column with one row for each op: "amax" (float64: the largest finite |x| of what it wrote), "nan",
/// "inf", "zero" (int64: elements); ops that did not run or wrote nothing: NaN and -1. Of fp32 and fp64 also
/// "off" (float64): the largest |as recorded - in this run| over elements that are finite in both, NaN where
/// none could be compared.
inline std::string replayed_column(const std::string& run, const std::string& column) {
  return "replay/" + run + "/" + column;
}

/// What culprit `op` was given as its argument `name`, or "output", "output 1", … for what it gave: a tensor
/// in the format that it had in this run. Only there if the op takes it as a tensor, and if it is not larger
/// than `kMostReplayedBytes`.
inline std::string replayed_values(std::int32_t op, const std::string& name, const std::string& run) {
  return "values/op " + std::to_string(op) + "/" + name + "/" + run;
}
/// Before the name in `replayed_values`.
inline std::string replayed_values_of(std::int32_t op) {
  return "values/op " + std::to_string(op) + "/";
}

/// Larger values of the culprit are not kept; in bytes, as fp64.
inline constexpr std::int64_t kMostReplayedBytes = 64 << 20;

}  // namespace nanquest
