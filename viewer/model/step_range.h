/// StepRange: the steps that plots show, one range for all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "viewer/model/history.h"

namespace nanquest::viewer {

struct StepRange {
  double first = 0, last = 1;  ///< shown, in steps; a plot's axis may write here

  /// Shows all steps from the next `fit` on; plots then show all values too.
  void show_all() { ++asked_; }
  /// Shows these steps; a later `show_all` includes steps that were added since.
  void show(double from, double to);
  /// True while all steps are shown that existed at the last `fit`.
  bool shows_all() const { return known_ && first <= data_first_ && last >= data_last_; }
  /// The steps that were chosen; nothing while all are shown.
  std::optional<std::pair<double, double>> chosen() const;
  /// Grows with every `show_all`.
  std::uint64_t asked() const { return asked_; }
  /// Call before drawing, with the first and the last existing step. Fits the range if all steps were
  /// requested, and if all were shown and others have come.
  void fit(double low, double high);
  /// The same with the steps of a history; an empty one leaves the range as it is.
  void fit(const History& history);
  /// Rows of `history` in the range and their neighbours: [first, second).
  std::pair<std::size_t, std::size_t> rows(const History& history) const;

 private:
  double data_first_ = 0, data_last_ = -1;  ///< the steps that existed the last time
  bool known_ = false;
  std::uint64_t asked_ = 1, answered_ = 0;
};

}  // namespace nanquest::viewer
