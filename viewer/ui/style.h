/// Colours, type and marks of the viewer. Safe for colour-blind people: Okabe-Ito colours, viridis for
/// amounts, and every meaning has a shape as well.
#pragma once

#include <cstddef>
#include <string>

#include "imgui.h"
#include "implot.h"
#include "replay/verdict/words.h"
#include "viewer/model/history.h"
#include "viewer/model/pyramid.h"

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

/// What a mark stands for; each has its own colour and shape. Green is a fix that was verified and nothing
/// else.
enum class Mark : std::uint8_t { nan, pos_inf, neg_inf, spike, scale_overflow, finite, verified, failed };

/// Sets theme, plot style and font for the current contexts. `scale` multiplies all sizes (1 = 16 px text).
void apply_style(float scale);

/// Opaque colour of a mark: vermillion, pink, white, orange, grey, sky, green, grey.
ImU32 mark_colour(Mark mark);
/// Draws the mark's shape (cross, triangle up, triangle down, diamond, square, ring, tick, bar) with
/// half-size `r` pixels.
void draw_mark(ImDrawList& list, ImVec2 centre, float r, Mark mark);
/// Same shape in one given colour, for marks on a cell of their own colour.
void draw_shape(ImDrawList& list, ImVec2 centre, float r, Mark mark, ImU32 ink);
/// An inline mark of text height, then the cursor stays on the line. Beside text that is aligned to buttons:
/// `lower` by their padding.
void inline_mark(Mark mark, float lower = 0);
/// The gravest thing in a stretch: NaN before +Inf before -Inf; `finite` if nothing is wrong.
Mark worst(const Extremes& e);
/// viridis at t in 0 … 1; NaN gives the foot.
ImU32 viridis(double t);
/// Colour number `i` of the series colours.
ImVec4 series_colour(std::size_t i);

/// Text scaled by `factor` until pop_text_size().
void push_text_size(float factor);
void pop_text_size();
/// Pixels that a column of a table needs for this text, and no fewer than for `least` ems.
float column_width(const std::string& widest, float least);
/// One line, cut with "…" to `width` pixels; hovering shows all of it.
void clipped_text(const std::string& text, float width);
/// A label on a coloured ground.
void chip(const char* text, ImVec4 ground);
/// Ground of a cause's chip: grey for UNKNOWN.
ImVec4 cause_colour(Label cause);
/// A button that stays lit while its choice holds; a small one has no padding above and below.
bool lit_button(const char* label, bool lit, bool small = false);
/// A heading inside a panel.
void heading(const char* text);

}  // namespace nanquest::viewer
