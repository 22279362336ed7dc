/// Colours and type of the viewer. Safe for colour-blind people: Okabe-Ito colours, viridis for amounts, and
/// every meaning has a shape as well (marks.h).
#pragma once

#include <cstddef>

#include "imgui.h"
#include "implot.h"

namespace nanquest::viewer {

/// Okabe and Ito (2008), and the greys of the dark theme.
namespace colour {
inline constexpr ImVec4 orange{0.902f, 0.624f, 0.000f, 1};
inline constexpr ImVec4 sky{0.337f, 0.706f, 0.914f, 1};
inline constexpr ImVec4 green{0.000f, 0.620f, 0.451f, 1};
inline constexpr ImVec4 yellow{0.941f, 0.894f, 0.259f, 1};
inline constexpr ImVec4 vermillion{0.835f, 0.369f, 0.000f, 1};
inline constexpr ImVec4 pink{0.800f, 0.475f, 0.655f, 1};
inline constexpr ImVec4 text{0.906f, 0.918f, 0.933f, 1};
inline constexpr ImVec4 muted{0.620f, 0.655f, 0.698f, 1};
inline constexpr ImVec4 ground{0.078f, 0.090f, 0.110f, 1};
inline constexpr ImVec4 raised{0.118f, 0.137f, 0.165f, 1};
}  // namespace colour

/// A plot without what covers it: the axes say enough.
inline constexpr ImPlotFlags kBarePlot =
    ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText | ImPlotFlags_NoTitle | ImPlotFlags_NoMenus;

/// Sets theme, plot style and font for the current contexts. `scale` multiplies all sizes (1 = 16 px text).
void apply_style(float scale);

/// viridis at t in 0 … 1; NaN gives the foot.
ImU32 viridis(double t);
/// Colour number `i` of the series colours.
ImVec4 series_colour(std::size_t i);

}  // namespace nanquest::viewer
