/// Comparison: two runs beside each other, and where they part.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/link.h"

namespace nanquest::viewer {

class Session;

/// One thing as it is here and there; "-" where there is none.
struct Difference {
  std::string what, here, there;
  std::optional<Link> place = {};
};

/// A scalar of both series, at the steps that both have.
struct SeriesDifference {
  std::string name;            ///< of its column
  std::size_t steps = 0;       ///< that both have
  std::optional<double> at;    ///< the first of them at which a bit differs; nothing: they are equal
  double here = 0, there = 0;  ///< then
};

struct Comparison {
  std::string here, there;               ///< names of the runs, never the same
  std::vector<Difference> settings;      ///< of the manifests: those that differ, and how the runs ended
  std::vector<SeriesDifference> series;  ///< loss first
  std::vector<Difference> incidents;     ///< of either, by step
  /// "story and other differ from step 42 on: loss 1.234 against 1.236".
  std::string headline() const;
};

Comparison compare(const Session& here, const Session& there);

}  // namespace nanquest::viewer
