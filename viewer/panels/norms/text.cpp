#include <cmath>

#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/model/text_table.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {

std::string norms_text(Session& session) {
  const History& history = session.history();
  const Statistic s = session.selection().statistic;
  if (!history.has(s))
    return fmt::format("No history of {}{}{}\n", statistic_title(s),
                       session.series_error().empty() ? "" : ": ", session.series_error());
  std::string out = fmt::format("{}, steps {} to {}\n", statistic_title(s),
                                exact_number(history.steps().front()), exact_number(history.steps().back()));
  for (const GateEvent& e : history.events())
    put(out, "  step {}: {}\n", exact_number(e.step), gate_words(e.gate));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < history.layers(s).size(); ++i) {
    const Pyramid& series = history.series(s, i);
    const Extremes all = series.query(0, series.size());
    double last = std::nan("");
    for (std::size_t r = series.size(); r-- > 0 && std::isnan(last);)
      if (std::isfinite(series[r])) last = series[r];
    std::string bad = bad_text(all.nan, all.pos_inf, all.neg_inf);
    for (std::size_t r = 0; r < series.size(); ++r)
      if (!std::isfinite(series[r])) {
        bad += " (first at step " + exact_number(history.steps()[r]) + ")";
        break;
      }
    rows.push_back({history.layers(s)[i], short_number(series[0]), short_number(last),
                    all.has_finite() ? short_number(all.min) : "-",
                    all.has_finite() ? short_number(all.max) : "-", bad});
  }
  return out + text_table({{"layer"},
                           {"first", true},
                           {"last finite", true},
                           {"smallest", true},
                           {"largest", true},
                           {"not finite"}},
                          rows);
}

}  // namespace nanquest::viewer
