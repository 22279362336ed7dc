#include "viewer/panels/series_lines.h"

#include <cmath>

#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

std::vector<std::string> row_of(const History& history, const SeriesLine& line) {
  const Pyramid& series = *line.values;
  const Extremes all = series.query(line.given_from, series.size());
  double last = std::nan("");
  for (std::size_t r = series.size(); r-- > 0 && std::isnan(last);)
    if (std::isfinite(series[r])) last = series[r];
  std::string bad = bad_text(all.nan, all.pos_inf, all.neg_inf);
  for (std::size_t r = line.given_from; r < series.size(); ++r)
    if (!std::isfinite(series[r])) {
      bad += " (first at step " + exact_number(history.steps()[r]) + ")";
      break;
    }
  return {line.name,
          short_number(series[line.given_from]),
          short_number(last),
          all.has_finite() ? short_number(all.min) : "-",
          all.has_finite() ? short_number(all.max) : "-",
          bad};
}

}  // namespace

PageTable series_table(const History& history, const std::string& title,
                       const std::vector<SeriesLine>& lines) {
  PageTable table;
  table.columns = {{title},           {"first", true}, {"last finite", true}, {"smallest", true},
                   {"largest", true}, {"not finite"}};
  for (const SeriesLine& line : lines)
    if (line.values->size() > 0) table.rows.push_back({row_of(history, line), Sign::none, line.place});
  return table;
}

}  // namespace nanquest::viewer
