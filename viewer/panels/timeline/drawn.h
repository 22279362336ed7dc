/// The timeline while it is drawn: what its parts share. Private to viewer/panels/timeline.
#pragma once

#include <optional>
#include <vector>

#include "viewer/model/timeline.h"
#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

/// An axis of steps above the last plot.
inline constexpr ImPlotAxisFlags kBareSteps = ImPlotAxisFlags_NoTickLabels;

/// The panel while it is drawn.
struct DrawnTimeline {
  UiState& state;
  const History& history;
  const std::vector<TimelineCurve>& curves;
  const std::vector<TimelineEvent>& events;
  std::optional<Measure>& measure;

  double selected() const { return state.session.selection().step; }
};

/// Inside a plot: tells what is known of the step under the mouse, and selects it when clicked; in the lanes
/// an event is nearer than a row.
void react_to_mouse(DrawnTimeline& drawn, bool lanes);
/// The lanes of events.
void draw_lanes(DrawnTimeline& drawn);
/// Pixels below the last plot, for the numbers of steps.
float steps_height();
/// One curve with what is beside it, so many pixels high.
void draw_curve(DrawnTimeline& drawn, const TimelineCurve& curve, ShownValues& shown, float height,
                bool last);

}  // namespace nanquest::viewer
