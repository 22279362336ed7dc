/// Sparkline: a series as a small line without axes, in the height of a line of text.
#pragma once

#include "imgui.h"
#include "viewer/model/history.h"

namespace nanquest::viewer {

/// Draws all of it at the cursor and takes `size` pixels: finite stretches as lines (logarithmic if every
/// finite value is above 0), a mark at the top where it is not finite, a vertical line at `step` (-1: none).
void sparkline(const History& history, const Pyramid& series, double step, ImVec2 size);

}  // namespace nanquest::viewer
