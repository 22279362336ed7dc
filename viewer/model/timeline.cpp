#include "viewer/model/timeline.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "viewer/model/columns.h"
#include "viewer/model/numbers.h"

namespace nanquest::viewer {
namespace {

constexpr std::size_t kToldRows = 4;  // of one step

/// The axis of a curve: `all`, extremes of all its values.
void make_room(TimelineCurve& curve, bool factors, const Extremes& all) {
  curve.logarithmic = factors && all.has_finite() && all.min > 0;
  if (!all.has_finite()) return;
  if (curve.logarithmic) {
    curve.low = all.min / 1.5;
    curve.high = all.max * 1.5;
  } else {
    const double margin =
        all.max > all.min ? (all.max - all.min) * 0.06 : std::max(std::abs(all.max) * 0.5, 1e-9);
    curve.low = all.min - margin;
    curve.high = all.max + margin;
  }
}

TimelineCurve curve_of(const History& history, const std::string& name, const std::string& title,
                       bool factors, const Pyramid& values, const Extremes& all) {
  TimelineCurve curve{{0, &values, given_from(name, values), &history}, name, title, false, 0, 1, {}, {}};
  make_room(curve, factors, all);
  return curve;
}

Extremes extremes_of(const Pyramid& values) {
  return values.query(0, values.size());
}

/// Includes what is drawn beside it; `all`: what the axis shows anyway.
void make_room_again(TimelineCurve& curve, Extremes all = {}) {
  all.add(extremes_of(*curve.values));
  for (const RunCurve& other : curve.beside) all.add(extremes_of(*other.values));
  for (const RehearsedCurve* run : curve.rehearsed)
    if (run->cures) all.add(extremes_of(*run->losses()));
  const KnownColumn* known = known_column(curve.name);
  make_room(curve, known != nullptr && known->factors, all);
}

/// Adds the curve of another run, if it has one.
void put_beside(TimelineCurve& curve, std::size_t run, const History& other, const Pyramid* values) {
  if (values == nullptr || values->size() == 0) return;
  curve.beside.push_back({run, values, given_from(curve.name, *values), &other});
}

/// Adds the rehearsed runs. Those that fail may grow without bound before: the axis has room for the others,
/// and for the run itself.
void put_rehearsed(TimelineCurve& curve, const std::vector<RehearsedCurve>& rehearsed) {
  for (const RehearsedCurve& run : rehearsed) {
    if (run.losses() == nullptr) continue;
    curve.rehearsed.push_back(&run);
  }
}

/// Headroom in bits: the axis shows where the format ends.
Extremes with_the_end() {
  Extremes end;
  end.add(0.0);
  return end;
}

}  // namespace

std::size_t given_from(const std::string& column, const Pyramid& values) {
  if (known_column(column) != nullptr || is_own_column(column)) return 0;
  std::size_t row = 0;
  while (row < values.size() && std::isnan(values[row])) ++row;
  return row < values.size() ? row : 0;
}

std::vector<TimelineCurve> timeline_curves(const History& history) {
  std::vector<TimelineCurve> out;
  const auto add = [&](const std::string& name, const std::string& title, bool factors) {
    const Pyramid* values = history.scalar(name);
    if (values == nullptr) return;
    const Extremes all = values->query(0, values->size());
    // A column that was never filled holds only NaN, or, if the probe does not know it (the learning rate of
    // updates by hand, gradients without a gate), only 0: it is left out.
    const bool given = (name != "lr" && name != "grad_norm") || all.min != 0 || all.max != 0 || all.nan > 0;
    if ((all.has_finite() && given) || all.pos_inf + all.neg_inf > 0 || name == "loss")
      out.push_back(curve_of(history, name, title, factors, *values, all));
  };
  for (const KnownColumn& known : kKnownColumns) add(known.name, known.title, known.factors);
  for (const std::string& name : history.scalar_names())
    if (known_column(name) == nullptr && !is_own_column(name)) add(name, title_of_column(name), false);
  return out;
}

std::vector<TimelineCurve> timeline_curves(const Session& session) {
  std::vector<TimelineCurve> out = timeline_curves(session.history());
  const auto& others = session.others();
  for (TimelineCurve& curve : out) {
    for (std::size_t i = 0; i < others.size(); ++i)
      put_beside(curve, i + 1, others[i]->history(), others[i]->history().scalar(curve.name));
    if (curve.name == "loss") put_rehearsed(curve, session.rehearsed());
    if (!curve.beside.empty() || !curve.rehearsed.empty()) make_room_again(curve);
  }
  const Headroom& headroom = session.headroom();
  const std::string& place = session.selection().place;
  if (const Pyramid* bits = headroom.empty() ? nullptr : headroom.bits(place); bits != nullptr) {
    const std::string title = place.empty() ? "Least headroom, bits" : "Headroom, bits: " + place;
    out.push_back(curve_of(headroom.history(), "headroom", title, false, *bits, {}));
    for (std::size_t i = 0; i < others.size(); ++i)
      if (const Headroom& other = others[i]->headroom(); !other.empty())
        put_beside(out.back(), i + 1, other.history(), other.bits(place));
    make_room_again(out.back(), with_the_end());
  }
  for (TimelineCurve& curve : out) {
    smooth(curve, session);
    for (RunCurve& other : curve.beside) smooth(other, session);
  }
  return out;
}

std::string values_at(const History& history, const Pyramid& values, double step, std::size_t given_from) {
  const auto [begin, last] = history.rows_at(step);
  const std::size_t first = std::min(std::max(begin, given_from), last);
  const std::size_t from = last - first > kToldRows ? last - kToldRows : first;
  std::string text = from > first ? grouped(from - first) + " before" : "";
  for (std::size_t r = from; r < last; ++r) text += (text.empty() ? "" : ", then ") + short_number(values[r]);
  return text;
}

std::string measure_text(const TimelineCurve& curve, const Measure& measure) {
  const History& history = *curve.history;
  if (history.empty()) return "";
  const std::size_t from = history.row_of(measure.from), to = history.row_of(measure.to);
  const double first = history.steps()[from], last = history.steps()[to];
  const double a = (*curve.values)[from], b = (*curve.values)[to];
  std::string text = exact_number(std::abs(last - first)) +
                     (std::abs(last - first) == 1 ? " step (" : " steps (") + exact_number(first) + " to " +
                     exact_number(last) + "): " + curve.title + " " + short_number(a) + " to " +
                     short_number(b);
  if (std::isfinite(b - a)) text.append(", ").append(b >= a ? "+" : "").append(short_number(b - a));
  if (curve.logarithmic && a > 0 && std::isfinite(b / a)) text += ", x " + short_number(b / a);
  const Extremes all =
      curve.values->query(std::max(std::min(from, to), curve.given_from), std::max(from, to) + 1);
  if (all.non_finite() > 0) text += "; " + bad_text(all.nan, all.pos_inf, all.neg_inf) + " among them";
  return text;
}

const char* lane_title(TimelineEvent::Lane lane) {
  constexpr const char* titles[kLanes] = {"incidents", "bad steps", "spikes", "forecasts"};
  return titles[static_cast<int>(lane)];
}

std::vector<Crowd> crowds_of(const std::vector<TimelineEvent>& events, TimelineEvent::Lane lane,
                             const std::function<float(double)>& pixel, float wide) {
  std::vector<Crowd> out;
  float from = 0;
  std::optional<double> before;
  for (const TimelineEvent& event : events) {
    if (event.lane != lane) continue;
    const float x = pixel(event.step);
    if (out.empty() || x - from >= wide) {
      out.push_back({x, 0, event.gate});
      from = x;
    }
    Crowd& crowd = out.back();
    crowd.count += before != event.step;
    before = event.step;
    crowd.gate = worse(crowd.gate, event.gate);
    crowd.x = (from + x) / 2;
  }
  return out;
}

int shown_lanes(const std::vector<TimelineEvent>& events) {
  const bool forecasts = std::ranges::count(events, TimelineEvent::Lane::forecast, &TimelineEvent::lane) > 0;
  return forecasts ? kLanes : kLanes - 1;
}

std::vector<TimelineEvent> timeline_events(const Session& session) {
  using Lane = TimelineEvent::Lane;
  std::vector<TimelineEvent> out;
  const std::vector<IncidentEntry>& incidents = session.incidents();
  for (std::size_t i = 0; i < incidents.size(); ++i) {
    const IncidentEntry& e = incidents[i];
    out.push_back(
        {Lane::incident, static_cast<double>(e.files.step), gate_of(e), static_cast<int>(i),
         "rank " + std::to_string(e.files.rank) + ": " + (e.silent ? "silent, " : "") + e.standing()});
  }
  for (const GateEvent& e : session.history().events()) {
    if (e.gate == Gate::ok) continue;
    out.push_back(
        {e.gate == Gate::spike ? Lane::spike : Lane::failed, e.step, e.gate, -1, gate_words(e.gate)});
  }
  for (const ManifestForecast& f :
       session.manifest() ? session.manifest()->forecasts : std::vector<ManifestForecast>()) {
    const auto step = static_cast<double>(f.step);
    out.push_back({Lane::forecast, step, Gate::ok, -1, f.text, f.place, step + f.earliest,
                   f.latest < 0 ? step : step + f.latest});
  }
  std::stable_sort(out.begin(), out.end(), [](const TimelineEvent& a, const TimelineEvent& b) {
    return std::tie(a.lane, a.step) < std::tie(b.lane, b.step);
  });
  return out;
}

}  // namespace nanquest::viewer
