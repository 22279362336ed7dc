#include <map>
#include <sstream>

#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {

/// One row a step: every scalar on record, the gate's answer, and the incidents of that step. Incidents of
/// steps that no series holds follow.
Result<std::string> timeline_csv(Session& session) {
  const History& history = session.history();
  std::map<double, std::string> incidents, gates;
  for (const TimelineEvent& e : timeline_events(session)) {
    std::string& text = e.lane == TimelineEvent::Lane::incident ? incidents[e.step] : gates[e.step];
    text += (text.empty() ? "" : "; ") + e.what;
  }
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names())
    if (name != "gate") out << ',' << csv_field(name);
  out << ",gate,incidents\n";
  const auto row = [&](double step, std::size_t r) {
    out << exact_number(step);
    for (std::size_t i = 0; i < history.scalar_names().size(); ++i)
      if (history.scalar_names()[i] != "gate")
        out << ',' << (r < history.rows() ? exact_number(history.scalars()[i][r]) : "");
    const auto gate = gates.find(step), incident = incidents.find(step);
    out << ',' << csv_field(gate == gates.end() ? "" : gate->second) << ','
        << csv_field(incident == incidents.end() ? "" : one_line(incident->second)) << '\n';
  };
  for (std::size_t r = 0; r < history.rows(); ++r) row(history.steps()[r], r);
  for (const auto& [step, what] : incidents)
    if (history.empty() || history.steps()[history.row_of(step)] != step) row(step, history.rows());
  return out.str();
}

}  // namespace nanquest::viewer
