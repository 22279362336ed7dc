/// LayerTable: the layers of a history at one step, as numbers that can be sorted and searched. A statistic
/// without series has no column.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/history.h"
#include "viewer/model/page.h"

namespace nanquest::viewer {

struct LayerTable {
  struct Row {
    std::string layer;
    std::vector<std::optional<double>>
        values;  ///< one per column; nothing if this layer has no series of it, or it is unknown
  };
  double step = 0;  ///< that the statistics are of
  std::vector<std::string>
      columns;            ///< titles of the values: statistics at the step, then those over the rows
  std::vector<Row> rows;  ///< in the order of the file

  /// Sorts by column `by` of `columns`, or by name (-1). Infinities sort above all numbers, NaN above these;
  /// missing values are last in either direction. Equal rows keep their order.
  void sort(int by, bool largest_first);
};

/// Every layer that has a series: all statistics at `row`, and of `chosen` the smallest and largest finite
/// value and how many NaN and Inf there are in rows [first, last). Those layers whose name holds all of
/// `words`.
LayerTable layer_table(const History& history, Statistic chosen, std::size_t row, std::size_t first,
                       std::size_t last, const std::string& words = "");
/// The row that a selected step means: its own, or the last one where no step is selected (-1).
std::size_t layer_row(const History& history, double step);
/// The same in words.
PageTable page_table(const LayerTable& table);

}  // namespace nanquest::viewer
