#include "probe/step/range_record.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "probe/numerics/format.h"
#include "probe/snapshot/ranges.h"
#include "probe/step/one_line.h"

namespace nanquest {
namespace {

constexpr std::size_t kMostColumns = 4096;
constexpr std::int64_t kAllRows = 500;  // this many first rows are all kept

}  // namespace

void RangeRecord::open(std::int64_t step, const std::vector<record::SeenRange>& seen) {
  opened_ = true;
  SeriesTable steps{"steps", {"step"}, {}}, places;
  for (const record::SeenRange& range : seen) {
    if (places.columns.size() == kMostColumns) break;
    const std::string text = range.place.text();
    if (columns_.emplace(text, places.columns.size()).second) places.columns.push_back(text);
  }
  if (places.columns.empty()) return;
  std::vector<SeriesTable> tables{std::move(steps)};
  for (const char* name : kRangeTables) {
    places.name = name;
    tables.push_back(places);
  }
  for (const SeriesTable& table : tables) row_.emplace_back(table.columns.size());
  Result<SeriesWriter> file = SeriesWriter::create(path_, tables, resume_, static_cast<double>(step));
  // Another program than the one that is resumed has other places: its ranges start anew.
  if (!file && resume_) file = SeriesWriter::create(path_, tables);
  if (file)
    file_.emplace(std::move(file).value());
  else
    complaint_ = "ranges are not written: " + one_line(file.error().text());
}

std::string RangeRecord::take(std::int64_t step, const std::vector<record::SeenRange>& seen) {
  if (seen.empty() || step < next_) return std::exchange(complaint_, {});
  if (!opened_) open(step, seen);
  if (!file_) return std::exchange(complaint_, {});
  row_[0][0] = static_cast<double>(step);
  for (std::size_t table = 1; table < row_.size(); ++table)
    std::fill(row_[table].begin(), row_[table].end(), std::numeric_limits<double>::quiet_NaN());
  for (const record::SeenRange& range : seen) {
    const auto column = columns_.find(range.place.text());
    const auto format = format_of(range.place.type);
    if (column == columns_.end() || !format || range.elements == 0) continue;
    const auto elements = static_cast<double>(range.elements);
    const double values[] = {
        range.amax, headroom_bits(*format, range.amax), static_cast<double>(range.zeros) / elements,
        static_cast<double>(range.subnormal) / elements, static_cast<double>(range.non_finite)};
    for (std::size_t table = 0; table < std::size(kRangeTables); ++table)
      row_[table + 1][column->second] = values[table];
  }
  std::vector<std::span<const double>> rows(row_.begin(), row_.end());
  if (const Status appended = file_->append(rows); !appended) {
    complaint_ = "the ranges end here: " + one_line(appended.error().text());
    file_.reset();
  }
  if (++rows_ >= kAllRows) next_ = step + std::max<std::int64_t>(1, step / 100);
  return std::exchange(complaint_, {});
}

}  // namespace nanquest
