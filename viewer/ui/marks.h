/// Marks: the symbols for NaN, Inf, a spike, a verified fix, each in a colour and a shape of its own.
#pragma once

#include <cstdint>

#include "imgui.h"
#include "probe/snapshot/model.h"
#include "viewer/model/pyramid.h"

namespace nanquest::viewer {

/// The meaning of a mark; each has its own colour and shape. Green is used only for a verified fix.
enum class Mark : std::uint8_t {
  nan,
  pos_inf,
  neg_inf,
  spike,
  scale_overflow,
  finite,
  verified,
  failed,
  forecast
};

/// Opaque colour of a mark: vermillion, pink, white, orange, grey, sky, green, grey,
/// yellow.
ImU32 mark_colour(Mark mark);
/// Draws the mark's shape (cross, triangle up, triangle down, diamond, square, ring, tick, bar, arrow to the
/// right) with half-size `r` pixels.
void draw_mark(ImDrawList& list, ImVec2 centre, float r, Mark mark);
/// Same shape in one given colour, for marks on a cell of their own colour.
void draw_shape(ImDrawList& list, ImVec2 centre, float r, Mark mark, ImU32 ink);
/// An inline mark of text height; the cursor stays on the line. Beside text that is aligned to buttons:
/// `lower` by their padding.
void inline_mark(Mark mark, float lower = 0);
/// The most severe mark in a stretch: NaN before +Inf before -Inf; `finite` if nothing is wrong.
Mark worst(const Extremes& e);
/// The mark of a gate's answer.
Mark mark_of(Gate gate);

}  // namespace nanquest::viewer
