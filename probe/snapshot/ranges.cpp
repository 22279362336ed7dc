#include "probe/snapshot/ranges.h"

#include <cmath>

#include "probe/snapshot/series.h"

namespace nanquest {
namespace {

const SeriesTable* find(const std::vector<SeriesTable>& tables, const std::string& name) {
  for (const SeriesTable& table : tables)
    if (table.name == name) return &table;
  return nullptr;
}

}  // namespace

Result<std::vector<PlaceRanges>> read_ranges(const std::string& path) {
  Result<std::vector<SeriesTable>> tables = read_series(path);
  if (!tables) return tables.error();
  const SeriesTable *steps = find(*tables, "steps"), *amax = find(*tables, kRangeTables[0]),
                    *headroom = find(*tables, kRangeTables[1]), *zero = find(*tables, kRangeTables[2]),
                    *subnormal = find(*tables, kRangeTables[3]);
  if (!steps || !amax || !headroom || steps->columns.size() != 1 || amax->columns != headroom->columns ||
      amax->rows() != steps->rows() || headroom->rows() != steps->rows())
    return Error{ErrorCode::bad_file, path + ": holds no ranges of a run", "give the run's directory"};
  const auto fits = [&](const SeriesTable* shares) {
    return shares != nullptr && shares->columns == amax->columns && shares->rows() == steps->rows();
  };
  std::vector<PlaceRanges> places;
  const std::size_t columns = amax->columns.size();
  for (std::size_t c = 0; c < columns; ++c) {
    PlaceRanges& place = places.emplace_back(PlaceRanges{amax->columns[c], {}, {}, {}, {}, {}});
    for (std::size_t row = 0; row < steps->rows(); ++row) {
      const double bits = headroom->values[row * columns + c];
      if (std::isnan(bits)) continue;
      place.steps.push_back(steps->values[row]);
      place.amax.push_back(amax->values[row * columns + c]);
      place.headroom.push_back(bits);
      if (fits(zero)) place.zero.push_back(zero->values[row * columns + c]);
      if (fits(subnormal)) place.subnormal.push_back(subnormal->values[row * columns + c]);
    }
  }
  return places;
}

}  // namespace nanquest
