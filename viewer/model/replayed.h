/// The step as replay ran it again: what each op wrote in fp32 and in fp64, beside what is on record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/trace/ids.h"
#include "viewer/model/trace.h"

namespace nanquest::viewer {

/// What one op wrote in one of the runs.
struct ReplayedValues {
  double amax = 0;  ///< the largest finite |x|
  std::int64_t nan = 0, inf = 0, zero = 0;
  /// The largest difference to the step as recorded, over elements that are finite in both; NaN if there are
  /// none.
  double off = 0;

  std::int64_t non_finite() const { return nan + inf; }
  /// That difference as a share of the largest |x| of this run; NaN where there is none.
  double relative() const;
};

/// The run in one precision, by op.
struct ReplayedRun {
  std::vector<double> amax, off;
  std::vector<std::int64_t> nan, inf, zero;

  /// Nothing for an op that did not run there or wrote nothing.
  std::optional<ReplayedValues> at(OpId op) const;
};

struct Replayed {
  ReplayedRun recorded, fp32, fp64;

  /// The first op that is not finite as recorded and is in fp64, or the other way round; if there is none,
  /// the first that is further off than `kFarOff` of its largest value. None where fp64 is near all the way.
  OpId first_divergence() const;
};

/// So much of the largest value that an op wrote is more than the rounding of a 16-bit step leaves behind.
inline constexpr double kFarOff = 0.1;

/// True if one of them has values that are not finite and the other has none.
bool changes_finiteness(const ReplayedValues& a, const ReplayedValues& b);
/// True if an op is finite in one of them alone, or further off than kFarOff. False where one is not known.
bool far_off(const std::optional<ReplayedValues>& recorded, const std::optional<ReplayedValues>& fp64);

/// Reads the three runs of a `.replay.h5` with `ops` rows; nothing if it holds none, as those of older
/// versions. `bad_file` if they are there and are no such columns.
Result<std::optional<Replayed>> read_replayed(const SnapshotReader& file, std::size_t ops);

/// "1.2e+04", "none finite", "-": as `amax_text` says it of what is on record.
std::string replayed_text(const std::optional<ReplayedValues>& values);
/// "3.1e-04", or "finite in fp64 alone", "finite as recorded alone", "-".
std::string off_text(const std::optional<ReplayedValues>& recorded,
                     const std::optional<ReplayedValues>& fp64);

}  // namespace nanquest::viewer
