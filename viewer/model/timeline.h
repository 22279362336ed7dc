/// Timeline: the numbers of a whole run and its events, on one range of steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "viewer/model/run_curve.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// One scalar of the series, as a curve.
struct TimelineCurve : RunCurve {
  std::string name;              ///< of its column: "loss"
  std::string title;             ///< for people: "Loss scale"
  bool logarithmic = false;      ///< every finite value is above 0, and factors matter
  double low = 0, high = 1;      ///< room for all finite values, low < high
  std::vector<RunCurve> beside;  ///< the same in other runs that have it
  /// For the loss: its values in the rehearsed runs of the open incident.
  std::vector<const RehearsedCurve*> rehearsed;
};

/// A program's own column ("eval_loss") begins at some step: earlier rows hold NaN because nothing was
/// measured, which is no finding. The first row that holds a value; 0 for the columns that the probe writes,
/// which every row has, and for columns without any value.
std::size_t given_from(const std::string& column, const Pyramid& values);

/// Loss, gradient norm, loss scale, learning rate, then the program's own columns; those that are recorded
/// and hold a value. Points into `history`.
std::vector<TimelineCurve> timeline_curves(const History& history);
/// The same for a session, then the headroom of the selected place, or the least of all, if recorded; with
/// the curves of the runs beside it, and smoothed as its selection says. Points into what the session holds.
std::vector<TimelineCurve> timeline_curves(const Session& session);

/// A stretch of a curve between two steps, in the order in which they were selected.
struct Measure {
  std::string curve;  ///< the name of its column
  double from = 0, to = 0;
};
/// "40 steps (20 to 60): Loss 5.2 to 4.0, -1.2", with the factor if factors matter for the curve, and how
/// many of its values are not finite. Steps are those of the nearest rows; "" without rows.
std::string measure_text(const TimelineCurve& curve, const Measure& measure);

/// The `values` of that history at a step: "2.5"; "nan, then 2.5" if it was repeated, and how many there are
/// before the last few; "" if there is no row of that step. `given_from`: earlier rows hold nothing.
std::string values_at(const History& history, const Pyramid& values, double step, std::size_t given_from = 0);

/// Something that happened at a step.
struct TimelineEvent {
  enum class Lane : std::uint8_t { incident, failed, spike, forecast };
  Lane lane = Lane::incident;
  double step = 0;
  Gate gate = Gate::non_finite;
  int incident = -1;        ///< row of Session::incidents()
  std::string what;         ///< "rank 0: FP16_OVERFLOW", "loss scale overflow", a forecast's own words
  std::string place = {};   ///< of a forecast
  double from = 0, to = 0;  ///< of a forecast: steps between which its format is exceeded; to < from: perhaps
                            ///< never
};
inline constexpr int kLanes = 4;

/// Events of a lane that are closer than a mark is wide.
struct Crowd {
  float x = 0;            ///< pixel of the first, or their middle
  std::size_t count = 0;  ///< of their steps
  Gate gate = Gate::ok;   ///< the worst of them
};
/// The events of a lane, in the order of steps, so that neighbours are at least `wide` pixels apart. `pixel`:
/// where a step is drawn.
std::vector<Crowd> crowds_of(const std::vector<TimelineEvent>& events, TimelineEvent::Lane lane,
                             const std::function<float(double)>& pixel, float wide);

/// The lanes that are shown: that of forecasts only if there are any.
int shown_lanes(const std::vector<TimelineEvent>& events);

/// "incidents", "bad steps", "spikes", "forecasts".
const char* lane_title(TimelineEvent::Lane lane);

/// What is known of the run, lane by lane, in the order of steps: incidents with and without a file, silent
/// ones too; skipped steps; spikes; forecasts.
std::vector<TimelineEvent> timeline_events(const Session& session);

}  // namespace nanquest::viewer
