/// RangeRecord: run/ranges.r0.h5, how far the values of every place reached at the steps that were looked at
/// whole. What the file holds: snapshot/ranges.h. The columns are the places of the first step.
/// Rows get rarer as the run goes on (from the 500th each comes at a step 1 % later at least), so the file stays
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
  /// Writes `path`; with `resume` goes on with the file that is there, if its columns are the same.
  RangeRecord(std::string path, bool resume) : path_(std::move(path)), resume_(resume) {}

  /// A step, looked at whole. What goes wrong with the file is said once, in the answer; "" otherwise.
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
