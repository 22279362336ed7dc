/// Lines of several runs in one plot, told apart by colour, by dashes and by a letter on each.
#pragma once

#include <cstddef>
#include <span>

#include "viewer/model/run_curve.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

/// Lengths of dashes and gaps in turn, as shares of the text's height; none for a continuous line.
using Dashes = std::span<const float>;
/// The usual ones, where only two kinds of lines are to be told apart.
extern const Dashes kDashes;

struct LineStyle {
  ImVec4 ink;
  Dashes dashes;
};
/// Of a run of Comparison::runs; no two of the first kMostRuns have both in common.
LineStyle style_of_run(std::size_t run);

/// Draws a line through these pixels, `walked` pixels into its dashes; returns how far it is then.
float draw_dashed_line(ImDrawList& list, ImVec2 from, ImVec2 to, Dashes dashes, ImU32 ink, float walked = 0);
/// A stretch of a curve in dashes. Inside a plot.
void draw_dashes(const Curve& stretch, Dashes dashes, ImU32 ink);
/// The letter of a run in a ring of its colour, centred there.
void draw_letter(ImDrawList& list, ImVec2 centre, std::size_t run);
/// The curve of one of several runs, smoothed if it is, the values themselves then faint behind it. `runs`:
/// how many there are; each has its letter at another place. Inside a plot.
void draw_run_curve(const RunCurve& curve, const StepRange& steps, double foot, std::size_t runs);
/// The values themselves behind a smoothed curve; nothing if it is not smoothed. Inside a plot.
void draw_unsmoothed(const RunCurve& curve, const StepRange& steps, double foot, ImVec4 ink);

}  // namespace nanquest::viewer
