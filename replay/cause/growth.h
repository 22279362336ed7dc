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
  std::vector<double> series;  ///< the window, oldest first, as recorded (NaN and Inf included)
};

/// Theil–Sen slope: the median of the slopes between all pairs of points (Sen 1968), over the finite positive
/// values of `series` seen as log2; `rising` gets the share of pairs that rise. NaN, Inf, zero and negative
/// values are left out, so one bad row changes nothing. 0 with fewer than 8 usable values.
double log2_slope(const std::vector<double>& series, double* rising = nullptr);

/// Columns of loss, norms and amax that grew over the last 64 or the last 16 rows by at least one bit (loss
/// and weight norms: half a bit), with at least three quarters of all pairs rising. Most bits first, one
/// entry a column.
std::vector<Growth> find_growth(const SnapshotDoc& doc);

}  // namespace nanquest
