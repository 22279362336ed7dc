/// SideBySide: the culprit's inputs and output, element by element: as recorded, in fp32, in fp64.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/verdict/replayed_paths.h"
#include "viewer/model/incident.h"
#include "viewer/model/progress.h"

namespace nanquest::viewer {

/// One value of the culprit: where the replay's file holds it.
struct CulpritValues {
  std::string name;  ///< of the argument, or "output", "output 1", …
  /// Paths of the runs of kReplayedRuns: as recorded, fp32, fp64; "" for one that is not held.
  std::array<std::string, kReplayedRuns.size()> paths;
};

/// The culprit's values that the file holds, inputs first; empty if it holds none.
std::vector<CulpritValues> culprit_values(const OpenIncident& incident);
/// The name of those to show: the ones that the selected tensor belongs to, otherwise the output, otherwise
/// the first; "" if there are none.
std::string shown_values(const std::vector<CulpritValues>& values, const std::string& selected);
/// Why there are none, or why some runs are missing, with a way out; "" if all is held.
std::string missing_text(const OpenIncident& incident, const std::vector<CulpritValues>& values);

struct SideBySide {
  struct Row {
    std::uint64_t element = 0;
    std::string position;                               ///< "[1, 6]"
    std::array<double, kReplayedRuns.size()> values{};  ///< of a run that is not held: NaN
    /// recorded - fp64; NaN where one of them is not finite, or is not held.
    double difference = 0;
    bool changes = false;  ///< one of the two is finite and the other is not
  };
  std::string name;
  std::string error;  ///< why the values can't be compared; then there are no rows
  std::array<bool, kReplayedRuns.size()> held{};
  std::uint64_t total = 0;    ///< elements
  std::uint64_t changed = 0;  ///< of them those with another finiteness in fp64
  double largest = 0;         ///< the largest |recorded - fp64| among those that are finite in both
  /// The worst first: other finiteness, then the largest difference; equal ones in the order of the tensor.
  std::vector<Row> rows;
};
inline constexpr std::size_t kMostRows = 256;

/// Reads the values and compares them. Recorded values are held against fp64, or against fp32 if fp64 is not
/// held.
SideBySide load_side_by_side(const OpenIncident& incident, const CulpritValues& values,
                             Progress* progress = nullptr);

/// "0.02", or "finite in one alone".
std::string row_difference(const SideBySide::Row& row);
/// "4 of 1,024 elements are finite in one of them alone; the others differ by at most 0.02".
std::string difference_text(const SideBySide& shown);

}  // namespace nanquest::viewer
