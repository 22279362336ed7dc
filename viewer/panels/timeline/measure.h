/// Dragging over a curve measures it. Private to viewer/panels/timeline.
#pragma once

#include <optional>

#include "viewer/model/timeline.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

/// While this exists, a drag moves no plot, except with Shift.
class DragMeasures {
 public:
  DragMeasures();
  ~DragMeasures();
  DragMeasures(const DragMeasures&) = delete;
  DragMeasures& operator=(const DragMeasures&) = delete;

 private:
  int before_;
};

/// Inside the plot of `curve`: begins, changes or ends a measurement with the mouse, if it belongs to this
/// curve.
void react_to_drag(std::optional<Measure>& measure, const TimelineCurve& curve);
/// Draws it, if it belongs to this curve: both ends, the stretch between, and its words.
void draw_measure(const std::optional<Measure>& measure, const TimelineCurve& curve);

}  // namespace nanquest::viewer
