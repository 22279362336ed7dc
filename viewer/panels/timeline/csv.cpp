#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/records.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

}  // namespace

/// One row per step: every recorded scalar, the gate's answer, the incidents of that step, and at watched
/// steps the headroom. A step that was repeated has a row each time, those of the second run in the same
/// order. Steps that no series of this run holds follow.
Result<std::string> timeline_csv(Session& session) {
  const History& history = session.history();
  using Lane = TimelineEvent::Lane;
  const std::vector<TimelineEvent> events = timeline_events(session);
  const Headroom& headroom = session.headroom();
  const std::string& place = session.selection().place;
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  const bool forecasts = shown_lanes(events) == kLanes;
  std::map<double, std::string> incidents, gates, foretold;
  for (const TimelineEvent& e : events) {
    std::string& text = e.lane == Lane::incident   ? incidents[e.step]
                        : e.lane == Lane::forecast ? foretold[e.step]
                                                   : gates[e.step];
    text += (text.empty() ? "" : "; ") + e.what;
  }
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names())
    if (name != "gate") out << ',' << csv_field(name);
  out << ",gate,incidents";
  if (!headroom.empty()) out << ",least_headroom_bits,least_headroom_place";
  if (!headroom.empty() && !place.empty()) out << ',' << csv_field("headroom_bits:" + place);
  if (forecasts) out << ",forecasts";
  for (const RehearsedCurve& run : session.rehearsed())
    out << ',' << csv_field("loss rehearsed, " + run.name);
  const History* other = session.other() == nullptr ? nullptr : &session.other()->history();
  for (const TimelineCurve& curve : curves)
    if (curve.other != nullptr) out << ',' << csv_field(curve.name + " of " + session.comparison()->there);
  out << '\n';
  // For steps of which all places were looked at.
  const auto bits_at = [&](double step) {
    const History& watched = headroom.history();
    const std::size_t r = watched.row_of(step);
    const bool known = !watched.empty() && watched.steps()[r] == step;
    const auto bits = [&](const std::string& of) {
      const double value = known ? (*headroom.bits(of))[r] : std::nan("");
      return std::isnan(value) ? "" : exact_number(value);
    };
    std::string text = ",";
    text.append(bits("")).append(",").append(csv_field(known ? headroom.nearest(r) : ""));
    if (!place.empty()) text.append(",").append(bits(place));
    return text;
  };
  std::vector<std::size_t> given;  // the first row of each scalar; empty cells before it
  for (std::size_t i = 0; i < history.scalar_names().size(); ++i)
    given.push_back(given_from(history.scalar_names()[i], history.scalars()[i]));
  const auto row = [&](double step, std::size_t r, std::size_t beside) {
    out << exact_number(step);
    for (std::size_t i = 0; i < history.scalar_names().size(); ++i)
      if (history.scalar_names()[i] != "gate")
        out << ',' << (r >= given[i] && r < history.rows() ? exact_number(history.scalars()[i][r]) : "");
    const auto gate = gates.find(step), incident = incidents.find(step);
    out << ',' << csv_field(gate == gates.end() ? "" : gate->second) << ','
        << csv_field(incident == incidents.end() ? "" : one_line(incident->second));
    if (!headroom.empty()) out << bits_at(step);
    if (forecasts) out << ',' << csv_field(foretold.count(step) ? one_line(foretold[step]) : "");
    for (const RehearsedCurve& run : session.rehearsed()) {
      const auto [here, end] = run.history.rows_at(step);
      out << ',' << (here < end ? exact_number((*run.losses())[here]) : "");
    }
    for (const TimelineCurve& curve : curves)
      if (curve.other != nullptr)
        out << ',' << (beside < curve.other->size() ? exact_number((*curve.other)[beside]) : "");
    out << '\n';
  };
  const auto rows_of = [&](double step) {
    const auto [here, here_end] = history.rows_at(step);
    const auto [there, there_end] =
        other == nullptr ? std::pair<std::size_t, std::size_t>{} : other->rows_at(step);
    const std::size_t count = std::max({here_end - here, there_end - there, std::size_t{1}});
    for (std::size_t i = 0; i < count; ++i)
      row(step, here + i < here_end ? here + i : kNoRow, there + i < there_end ? there + i : kNoRow);
    return here_end;
  };
  for (std::size_t r = 0; r < history.rows();) r = rows_of(history.steps()[r]);
  std::set<double> others;  // that no series holds
  for (const auto* steps : {&incidents, &foretold})
    for (const auto& [step, what] : *steps) others.insert(step);
  for (const double step : headroom.history().steps()) others.insert(step);
  for (const RehearsedCurve& run : session.rehearsed())
    others.insert(run.history.steps().begin(), run.history.steps().end());
  if (other != nullptr) others.insert(other->steps().begin(), other->steps().end());
  for (const double step : others)
    if (const auto [first, last] = history.rows_at(step); first == last) (void)rows_of(step);
  return out.str();
}

}  // namespace nanquest::viewer
