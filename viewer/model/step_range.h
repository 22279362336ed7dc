/// StepRange: the steps that plots show, one range for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "viewer/model/history.h"

namespace nanquest::viewer {

struct StepRange {
  double first = 0, last = 1;  ///< shown, in steps; a plot's axis may write here

  /// All steps from the next `fit` on; plots show all values then, too.
  void show_all() { ++asked_; }
  /// Shows these, whatever there are; showing all steps later includes what has come since.
  void show(double from, double to);
  /// True while all steps are shown that there were at the last `fit`.
  bool shows_all() const { return known_ && first <= data_first_ && last >= data_last_; }
  /// The steps that were chosen; nothing while all are shown.
  std::optional<std::pair<double, double>> chosen() const;
  /// Grows with every `show_all`.
  std::uint64_t asked() const { return asked_; }
  /// Call before drawing, with the first and the last step that there are. Fits the range where somebody
  /// asked for all steps, and where all that there were are shown and others have come.
  void fit(double low, double high);
  /// The same with the steps of a history; an empty one leaves the range as it is.
  void fit(const History& history);
  /// Rows of `history` in the range and their neighbours: [first, second).
  std::pair<std::size_t, std::size_t> rows(const History& history) const;

 private:
  double data_first_ = 0, data_last_ = -1;  ///< steps that there were the last time
  bool known_ = false;
  std::uint64_t asked_ = 1, answered_ = 0;
};

}  // namespace nanquest::viewer
