/// SeriesWord: what the series of a rank says of its steps, without its values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/manifest.h"
#include "viewer/model/history.h"

namespace nanquest::viewer {

struct SeriesWord {
  std::int32_t rank = 0;
  std::string error;  ///< why it can't be read, "" if it can
  std::size_t rows = 0;
  double first = 0, last = 0;      ///< its steps
  bool looks = false;              ///< it says of each step whether that was finite
  std::uint64_t overflows = 0;     ///< steps whose loss scale overflowed
  std::optional<double> bad_step;  ///< the first that was not finite
  std::string bad;                 ///< what of it, "" where the gate says so
};

/// The word of a history that was read, or of one that could not be.
SeriesWord word_of(std::int32_t rank, const History& history);

/// One sentence about a run of which no incident is known. That its steps were finite is said only where the
/// series of all its ranks say so. `world_size`: how many ranks there should be.
std::string steps_text(const std::vector<SeriesWord>& words, std::int32_t world_size);

}  // namespace nanquest::viewer
