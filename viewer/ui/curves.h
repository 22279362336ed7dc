/// Series over steps inside a plot of ImPlot: their finite runs, marks where they are not finite, the range
/// of values that is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "implot.h"
#include "viewer/model/history.h"
#include "viewer/model/step_range.h"

namespace nanquest::viewer {

struct Curve {
  std::vector<double> x, y;
};

/// Adds a stretch of a series to its runs: one point at `first`, one at `last` if there are two values; after
/// a non-finite value another run begins.
void add_to_runs(std::vector<Curve>& runs, const Extremes& stretch, double first, double last, double foot);
/// Finite runs of rows [first, last), at most two points per pixel column; a gap where something is not
/// finite, and where steps are missing. Nothing is below `foot`.
std::vector<Curve> finite_runs(const History& history, const Pyramid& series, std::size_t first,
                               std::size_t last, double foot, float pixels);
/// One mark where a series is not finite, `lane` pixels below the plot's top.
void draw_bad_lane(const History& history, const Pyramid& series, std::size_t first, std::size_t last,
                   float lane);
/// Vertical lines and marks where the gate was not `ok` and at the selected step (-1: none).
void draw_events(const History& history, double selected);
/// Only the line at the selected step.
void draw_selected_step(double selected);

/// Values that curves are shown between.
struct ShownValues {
  double low = 0, high = 0;  ///< as they were fitted; 0, 0: never
  bool own = false;          ///< the person has chosen others since
  std::uint64_t asked = 0;   ///< StepRange::asked() when they were fitted
  ImPlotRange seen = {};     ///< in view in the last frame; its ends are named on the axis of this one
};

/// Axes that the mouse does not change now: the wheel zooms steps, with Ctrl values; a drag with the right
/// button a box of both, or one of them if the box is so flat or so narrow that it was drawn along an axis.
struct LockedAxes {
  ImPlotAxisFlags steps = 0, values = 0;
};
LockedAxes locked_axes();
/// True in the frame in which a box was drawn to its end.
bool box_ended();

/// Plots over steps between these begin at the same x, also those of another panel; true if they do.
bool begin_plots_of_steps();
void end_plots_of_steps(bool begun);
/// Pixels beside such a plot: for the scale of the map of layers, left free by all others.
float beside_steps();
/// The width of such a plot; a scroll bar of the panel takes the room beside it.
float width_of_steps();

/// How a plot of curves over steps is set up.
struct CurveAxes {
  const char* steps = nullptr;  ///< titles; null for none
  const char* values = nullptr;
  ImPlotAxisFlags step_flags = 0;
  bool logarithmic = false;  ///< the values
  double low = 0, high = 1;  ///< all of them lie between
  float height = 0;          ///< pixels of the plot's inside; 0 if it does not matter
  float free = 0;            ///< pixels at its top that fitted values leave free: for a title, for marks
};

/// Call after BeginPlot, instead of all other setup. Steps are those of `steps`. Values are fitted to [low,
/// high] when all were requested since the last drawing, and when these have changed, unless the user has
/// chosen a range. The mouse changes what `locked_axes` allows, so that nothing leaves the plot
/// unintentionally. A logarithmic axis names enough values even within a decade.
void setup_curves(StepRange& steps, ShownValues& shown, const CurveAxes& axes);

}  // namespace nanquest::viewer
