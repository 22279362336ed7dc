/// RangeRecord: run/ranges.r0.h5, how far the values of every place reached at the steps of which all places
/// were looked at. Contents of the file: snapshot/ranges.h. The columns are the places of the first step.
/// Rows get rarer as the run goes on (from the 500th on, each comes at least 1 % later), so the file stays
/// small.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/record/range_watch.h"
#include "probe/snapshot/series.h"

namespace nanquest {

class RangeRecord {
 public:
  /// Writes `path`; with `resume`, continues the existing file if its columns are the same.
  RangeRecord(std::string path, bool resume) : path_(std::move(path)), resume_(resume) {}

  /// Adds a step of which all places were looked at. An error of the file is returned once; otherwise "".
  std::string take(std::int64_t step, const std::vector<record::SeenRange>& seen);

 private:
  void open(std::int64_t step, const std::vector<record::SeenRange>& seen);

  std::string path_, complaint_;
  bool resume_, opened_ = false;
  std::optional<SeriesWriter> file_;
  std::unordered_map<std::string, std::size_t> columns_;
  std::vector<std::vector<double>> row_;  ///< "steps" and the tables
  std::int64_t rows_ = 0, next_ = 0;
};

}  // namespace nanquest
