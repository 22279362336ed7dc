/// Series over steps inside a plot of ImPlot: their finite runs, marks where they are not finite, the range
/// of values that is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "implot.h"
#include "viewer/model/history.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {

struct Curve {
  std::vector<double> x, y;
};

/// Finite runs of rows [first, last), at most two points a pixel column; a gap wherever something is not
/// finite. Nothing lies below `foot`.
std::vector<Curve> finite_runs(const History& history, const Pyramid& series, std::size_t first,
                               std::size_t last, double foot, float pixels);
/// One mark where a series is not finite, `lane` pixels below the plot's top.
void draw_bad_lane(const History& history, const Pyramid& series, std::size_t first, std::size_t last,
                   float lane);
/// Vertical lines and marks where the gate was not `ok` and at the selected step (-1: none).
void draw_events(const History& history, double selected);
/// The line at the selected step alone.
void draw_selected_step(double selected);
/// The mark of a gate's answer.
Mark mark_of(Gate gate);

/// Values that curves are shown between.
struct ShownValues {
  double low = 0, high = 0;  ///< as they were fitted; 0, 0: never
  bool own = false;          ///< the person has chosen others since
  std::uint64_t asked = 0;   ///< StepRange::asked() when they were fitted
};

/// Before SetupFinish: fits the values to [low, high] when somebody has asked for all of them since they were
/// drawn last (`asked`: StepRange::asked()), and when these have changed, unless a person has chosen what to
/// see.
void setup_values(ShownValues& shown, std::uint64_t asked, double low, double high);
/// After SetupFinish: notices that a person has zoomed or panned the values.
void note_values(ShownValues& shown);

}  // namespace nanquest::viewer
