/// SeriesWord: a summary of a rank's series, without its values.
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
  bool looks = false;              ///< for each step it is known whether that was finite
  std::uint64_t overflows = 0;     ///< steps whose loss scale overflowed
  std::optional<double> bad_step;  ///< the first that was not finite
  std::string bad;                 ///< what of it, "" where the gate says so
};

/// The summary of a history that was read, or of one that could not be.
SeriesWord word_of(std::int32_t rank, const History& history);

/// One sentence about a run without a known incident. It says that the steps were finite only if the series
/// of all ranks show it. `world_size`: how many ranks there should be.
std::string steps_text(const std::vector<SeriesWord>& words, std::int32_t world_size);

}  // namespace nanquest::viewer
