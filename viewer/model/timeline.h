/// Timeline: the numbers of a whole run and what happened in it, on one range of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// One scalar of the series, as a curve.
struct TimelineCurve {
  std::string name;                  ///< of its column: "loss"
  std::string title;                 ///< for people: "Loss scale"
  bool logarithmic = false;          ///< every finite value is above 0, and they are about factors
  double low = 0, high = 1;          ///< room for all finite values, low < high
  const Pyramid* values = nullptr;   ///< of the history
  std::size_t given_from = 0;        ///< the first row that the program gave a value for (`given_from`)
  const History* history = nullptr;  ///< whose steps they are of
  const Pyramid* other = nullptr;    ///< the same of the run beside it, if there is one
  const History* other_history = nullptr;
  /// Of the loss: what it was in the runs that were rehearsed of the open incident.
  std::vector<const RehearsedCurve*> rehearsed = {};
};

/// A program's own column ("eval_loss") is told from some step on: rows before it hold NaN because nobody had
/// measured anything, which is no finding. The first row that holds something; 0 for the columns that the
/// probe writes, which are told in every row, and where nothing else is.
std::size_t given_from(const std::string& column, const Pyramid& values);

/// Loss, gradient norm, loss scale, learning rate, then the program's own columns; those that are on record
/// and hold anything. Points into `history`.
std::vector<TimelineCurve> timeline_curves(const History& history);
/// The same of a session, with those of the run beside it, then the headroom of the place that is selected,
/// or the least of all, where it is on record. Points into what the session holds.
std::vector<TimelineCurve> timeline_curves(const Session& session);

/// A stretch of a curve between two steps, in the order in which they were pointed at.
struct Measure {
  std::string curve;  ///< the name of its column
  double from = 0, to = 0;
};
/// "40 steps (20 to 60): Loss 5.2 to 4.0, -1.2", with the factor where the curve is about factors, and how
/// many of its values are not finite. Steps are those of the nearest rows; "" without rows.
std::string measure_text(const TimelineCurve& curve, const Measure& measure);

/// What `values` of that history are at a step: "2.5"; "nan, then 2.5" where it was repeated, and how many
/// there are before the last few; "" where no row is of that step.
/// `given_from`: rows before hold nothing.
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
  double from = 0, to = 0;  ///< of a forecast: steps between which its format ends; to < from: perhaps never
};
inline constexpr int kLanes = 4;
/// Lanes that are shown: that of forecasts only where there are any.
int shown_lanes(const std::vector<TimelineEvent>& events);

/// "incidents", "bad steps", "spikes", "forecasts".
const char* lane_title(TimelineEvent::Lane lane);

/// What is known of the run, lane by lane, in the order of steps: incidents with and without a file, silent
/// ones too; steps that were left out; spikes; what was said to leave its format soon.
std::vector<TimelineEvent> timeline_events(const Session& session);

}  // namespace nanquest::viewer
