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

/// A column of values besides those of the run's own scalars, found by step: rows of one step in their order.
struct Column {
  std::string name;
  const History* history;
  const Pyramid* values;
};

/// Of the runs beside, of the rehearsed ones, and what was smoothed.
std::vector<Column> other_columns(const Session& session, const std::vector<TimelineCurve>& curves) {
  std::vector<Column> out;
  for (const RehearsedCurve& run : session.rehearsed())
    if (run.losses() != nullptr) out.push_back({"loss rehearsed, " + run.name, &run.history, run.losses()});
  const auto smooth = [&](const RunCurve& curve, const std::string& name) {
    if (curve.smooth)
      out.push_back({name + " smoothed by " + exact_number(session.selection().smoothing), curve.history,
                     curve.smooth.get()});
  };
  for (const TimelineCurve& curve : curves) {
    smooth(curve, curve.name);
    for (const RunCurve& other : curve.beside) {
      const std::string name = curve.name + " of " + session.comparison()->runs[other.run];
      out.push_back({name, other.history, other.values});
      smooth(other, name);
    }
  }
  return out;
}

/// What happened at which steps.
struct Events {
  std::map<double, std::string> incidents, gates, foretold;
  explicit Events(const std::vector<TimelineEvent>& events) {
    using Lane = TimelineEvent::Lane;
    for (const TimelineEvent& e : events) {
      std::string& text = e.lane == Lane::incident   ? incidents[e.step]
                          : e.lane == Lane::forecast ? foretold[e.step]
                                                     : gates[e.step];
      text += (text.empty() ? "" : "; ") + e.what;
    }
  }
  static std::string at(const std::map<double, std::string>& events, double step) {
    const auto found = events.find(step);
    return found == events.end() ? "" : one_line(found->second);
  }
};

/// At a step of which all places were looked at.
std::string headroom_cells(const Session& session, double step) {
  const Headroom& headroom = session.headroom();
  const std::string& place = session.selection().place;
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
}

}  // namespace

/// One row per step: every recorded scalar, the gate's answer, the incidents of that step, and at watched
/// steps the headroom. A step that was repeated has a row each time, those of other runs in the same
/// order. Steps that no series of this run holds follow.
Result<std::string> timeline_csv(Session& session) {
  const History& history = session.history();
  const std::vector<TimelineEvent> all = timeline_events(session);
  const Events events(all);
  const Headroom& headroom = session.headroom();
  const std::string& place = session.selection().place;
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  const std::vector<Column> others = other_columns(session, curves);
  const bool forecasts = shown_lanes(all) == kLanes;
  std::ostringstream out;
  out << "step";
  for (const std::string& name : history.scalar_names())
    if (name != "gate") out << ',' << csv_field(name);
  out << ",gate,incidents";
  if (!headroom.empty()) out << ",least_headroom_bits,least_headroom_place";
  if (!headroom.empty() && !place.empty()) out << ',' << csv_field("headroom_bits:" + place);
  if (forecasts) out << ",forecasts";
  for (const Column& column : others) out << ',' << csv_field(column.name);
  out << '\n';
  std::vector<std::size_t> given;  // the first row of each scalar; empty cells before it
  for (std::size_t i = 0; i < history.scalar_names().size(); ++i)
    given.push_back(given_from(history.scalar_names()[i], history.scalars()[i]));
  std::set<const History*> beside;  // whose repeated steps have a row each
  for (const auto& other : session.others()) beside.insert(&other->history());
  // The `turn`th row of a step.
  const auto row = [&](double step, std::size_t turn) {
    const auto [here, here_end] = history.rows_at(step);
    const std::size_t r = here + turn < here_end ? here + turn : std::numeric_limits<std::size_t>::max();
    out << exact_number(step);
    for (std::size_t i = 0; i < history.scalar_names().size(); ++i)
      if (history.scalar_names()[i] != "gate")
        out << ',' << (r >= given[i] && r < history.rows() ? exact_number(history.scalars()[i][r]) : "");
    out << ',' << csv_field(Events::at(events.gates, step)) << ','
        << csv_field(Events::at(events.incidents, step));
    if (!headroom.empty()) out << headroom_cells(session, step);
    if (forecasts) out << ',' << csv_field(Events::at(events.foretold, step));
    for (const Column& column : others) {
      const auto [first, end] = column.history->rows_at(step);
      out << ',' << (first + turn < end ? exact_number((*column.values)[first + turn]) : "");
    }
    out << '\n';
  };
  const auto rows_of = [&](double step) {
    const auto [here, here_end] = history.rows_at(step);
    std::size_t count = std::max<std::size_t>(here_end - here, 1);
    for (const History* other : beside) {
      const auto [there, there_end] = other->rows_at(step);
      count = std::max(count, there_end - there);
    }
    for (std::size_t turn = 0; turn < count; ++turn) row(step, turn);
    return here_end;
  };
  for (std::size_t r = 0; r < history.rows();) r = rows_of(history.steps()[r]);
  std::set<double> more;  // steps that the run's own series does not hold
  for (const auto* steps : {&events.incidents, &events.foretold})
    for (const auto& [step, what] : *steps) more.insert(step);
  more.insert(headroom.history().steps().begin(), headroom.history().steps().end());
  for (const Column& column : others)
    more.insert(column.history->steps().begin(), column.history->steps().end());
  for (const History* other : beside) more.insert(other->steps().begin(), other->steps().end());
  for (const double step : more)
    if (const auto [first, last] = history.rows_at(step); first == last) (void)rows_of(step);
  return out.str();
}

}  // namespace nanquest::viewer
