/// growth: did values grow over the steps before the incident? That is what one step's replay can't see.
#pragma once

#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// One column of the history that grew.
struct Growth {
  std::string what;            ///< "grad_norm of blocks.1.mlp", "loss"
  double bits_per_step = 0;    ///< robust slope of log2(value)
  double bits = 0;             ///< slope × steps
  double first = 0, last = 0;  ///< finite values at both ends of the window
  std::vector<double> series;  ///< the window, one value a step, oldest first, as recorded (NaN and Inf
                               ///< included); NaN for a step at which it was not measured
};

/// How a series goes: the Theil–Sen slope of its log2, which is the median of the slopes between all pairs of
/// points (Sen 1968). Points are the finite positive values: one bad row changes nothing.
struct Trend {
  int points = 0;
  double bits_per_step = 0;
  double rising = 0;  ///< share of the pairs that rise
};

/// The trend of `series`, one value a step. Without slope if there are fewer than two points.
Trend log2_trend(const std::vector<double>& series);

/// Columns of loss, norms and amax that grew over the last 64 or the last 16 steps by at least one bit (loss
/// and weight norms: half a bit), with at least three quarters of all pairs rising among 8 or more points.
/// Most bits first, one entry a column.
///
/// Weights of a large model are measured at some steps only (column "measured" of the table "scalars";
/// between them the history repeats the last value). Then the whole history is the window, and 5 points are
/// enough if each is above all before it: by chance that is 1 in 120.
std::vector<Growth> find_growth(const SnapshotDoc& doc);

}  // namespace nanquest
