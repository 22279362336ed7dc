#include "viewer/model/numbers.h"
#include "viewer/model/session.h"
#include "viewer/panels/lines.h"
#include "viewer/panels/series_lines.h"

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
  std::vector<SeriesLine> lines;
  for (std::size_t i = 0; i < history.layers(s).size(); ++i)
    lines.push_back({history.layers(s)[i], &history.series(s, i)});
  return out + series_table(history, "layer", lines);
}

}  // namespace nanquest::viewer
