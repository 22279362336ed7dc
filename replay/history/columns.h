/// columns: the numbers of a file's history, column by column.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// The column, one value per row; NaN where `measured` shows that the row only repeats an earlier one. An
/// empty `measured` stands for a history that measured always.
std::vector<double> column_of(const SeriesTable& table, std::size_t column,
                              const std::vector<double>& measured);

/// The column `name` of the table `table` ("scalars", "weight_amax"); empty if there is none.
std::vector<double> column_named(const SnapshotDoc& doc, const char* table, const std::string& name,
                                 const std::vector<double>& measured = {});

}  // namespace nanquest
