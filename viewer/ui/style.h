/// Type, sizes and colours of the viewer.
#pragma once

#include <cstddef>

#include "imgui.h"
#include "implot.h"
#include "viewer/ui/theme.h"

namespace nanquest::viewer {

/// A plot without legend, mouse text, title and menu: the axes are enough.
inline constexpr ImPlotFlags kBarePlot =
    ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_NoTitle | ImPlotFlags_NoMenus;

/// Sets theme, plot style and font for the current contexts. `scale` multiplies all sizes (1 = 16 px text);
/// the user's size is then 100 %.
void apply_style(float scale, Theme theme = Theme::dark);

/// Sizes that a person may choose, in percent of that scale.
inline constexpr int kLeastSize = 50, kMostSize = 400;
/// Applies a size, the nearest allowed one; not while a window is drawn.
void set_size(int percent);
int current_size();
/// The next larger size, or smaller one (`by` below 0), of those that people step through.
int size_after(int percent, int by);
/// A transparent version of a colour.
ImU32 faint(ImVec4 ink, float alpha);

/// viridis at t in 0 … 1; NaN gives the lowest colour.
ImU32 viridis(double t);
/// Colour number `i` of the series colours.
ImVec4 series_colour(std::size_t i);

}  // namespace nanquest::viewer
