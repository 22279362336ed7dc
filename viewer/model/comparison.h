/// Comparison: two runs side by side, and where they diverge.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/link.h"

namespace nanquest::viewer {

class Session;

/// One value in this run and in the other; "-" if there is none.
struct Difference {
  std::string what, here, there;
  std::optional<Link> place = {};
};

/// A scalar of both series, at the steps that both have. A program's own metric is NaN where it was not
/// logged: NaN against a number is not a difference there.
struct SeriesDifference {
  std::string name;            ///< of its column
  std::size_t steps = 0;       ///< that both have, each counted once
  std::optional<double> at;    ///< the first of them at which a bit differs; nothing: they are equal
  double here = 0, there = 0;  ///< then
};

struct Comparison {
  std::string here, there;           ///< names of the runs, never the same
  std::vector<Difference> settings;  ///< of the manifests: those that differ, and how the runs ended; none
                                     ///< where one has no manifest
  /// Those that both have, loss first; without the probe's internal columns and readings of the clock.
  std::vector<SeriesDifference> series;
  std::vector<std::string> only_here, only_there;  ///< such series that one alone has
  std::vector<Difference> incidents;               ///< of either, by step
  /// "story and other differ from step 42 on: loss 1.234 against 1.236".
  std::string headline() const;
  /// "only in other: qk_logit, qk_clipped"; none where both have the same series.
  std::vector<std::string> only_lines() const;
};

Comparison compare(const Session& here, const Session& there);

}  // namespace nanquest::viewer
