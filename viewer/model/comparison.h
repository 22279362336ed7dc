/// Comparison: runs side by side, and where they diverge.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/link.h"

namespace nanquest::viewer {

class Session;

/// Runs that are shown together, the open one among them: as many as can be told apart.
inline constexpr std::size_t kMostRuns = 12;
/// "A" for the open run, "B", … for those beside it: what curves and the legend call it.
std::string letter_of_run(std::size_t run);

/// One fact about each run, in their order; "-" if there is none.
struct Difference {
  std::string what;
  std::vector<std::string> values;
  std::optional<Link> place = {};
};

/// A scalar of two series, at the steps that both have. A program's own metric is NaN where it was not
/// logged: NaN against a number is not a difference there.
struct SeriesDifference {
  std::string name;            ///< of its column
  std::size_t steps = 0;       ///< that both have, each counted once
  std::optional<double> at;    ///< the first of them at which a bit differs; nothing: they are equal
  double here = 0, there = 0;  ///< then
};

/// The open run and one beside it.
struct Pair {
  /// Those that both have, loss first; without the probe's internal columns and readings of the clock.
  std::vector<SeriesDifference> series;
  std::vector<std::string> only_here, only_there;  ///< such series that one alone has
};

struct Comparison {
  std::vector<std::string> runs;      ///< their names, that of the open one first; no two are the same
  std::vector<Difference> settings;   ///< of the manifests: those that differ, and how the runs ended; none
                                      ///< where fewer than two have a manifest
  std::vector<Pair> pairs;            ///< one for each run beside the open one
  std::vector<Difference> incidents;  ///< of any, by step
  /// "story and other differ from step 42 on: loss 1.234 against 1.236"; for more than two "story beside a, b
  /// and c".
  std::string headline() const;
  /// The former for each run beside the open one.
  std::vector<std::string> sentences() const;
  /// "only in other: qk_logit, qk_clipped"; none where all have the same series.
  std::vector<std::string> only_lines() const;
};

Comparison compare(const Session& here, const std::vector<const Session*>& others);

}  // namespace nanquest::viewer
