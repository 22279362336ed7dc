/// The names of the columns that the probe itself writes in the table "scalars" of a series, in their order.
/// A program's own columns follow them. A series of an older version lacks the last ones.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace nanquest {

inline constexpr std::string_view kScalarNames[] = {
    "step",          "loss",    "lr",       "scale",    "gate",        "grad_norm",   "grad_amax",
    "bad_gradients", "seconds", "measured", "resident", "device_peak", "probe_share", "watch_share"};

/// Whether the probe writes the column of this name.
inline bool is_probe_column(std::string_view name) {
  return std::ranges::find(kScalarNames, name) != std::end(kScalarNames);
}

}  // namespace nanquest
