#include "replay/history/columns.h"

#include <algorithm>
#include <limits>

namespace nanquest {

std::vector<double> column_of(const SeriesTable& table, std::size_t column,
                              const std::vector<double>& measured) {
  std::vector<double> series;
  for (std::size_t r = 0; r < table.rows(); ++r)
    series.push_back(r < measured.size() && measured[r] == 0
                         ? std::numeric_limits<double>::quiet_NaN()
                         : table.values[r * table.columns.size() + column]);
  return series;
}

std::vector<double> column_named(const SnapshotDoc& doc, const char* table, const std::string& name,
                                 const std::vector<double>& measured) {
  for (const SeriesTable& t : doc.history) {
    const auto found = std::find(t.columns.begin(), t.columns.end(), name);
    if (t.name == table && found != t.columns.end())
      return column_of(t, static_cast<std::size_t>(found - t.columns.begin()), measured);
  }
  return {};
}

}  // namespace nanquest
