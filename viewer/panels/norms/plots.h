/// The two plots of the norms panel. They share the range of steps and the selection.
#pragma once

#include "viewer/panels/norms/view.h"

namespace nanquest::viewer {

/// Layers whose lines are drawn one by one; more are a bundle, in which a pixel column each would be for
/// nobody.
inline constexpr std::size_t kFewLayers = 64;
/// What the plots show of rows [first, last) in a plot of so many pixels: a column for every two pixels,
/// fewer where there are many layers. Made anew when any of that changes. In a frame that shows other rows
/// than the one before (somebody zooms) there are fewer columns still, and the next has them all: a picture
/// that is coarse for a moment beats one that comes late.
const HeatMap& shown_map(UiState& state, ShownMap& shown, const History& history, Statistic s, float pixels);
/// Layers × steps, log colour. Non-finite cells are drawn on top, in colours and shapes of their own.
void draw_heat_map(UiState& state, ShownMap& shown, const History& history, Statistic s, float height);
/// One line a layer, log scale, with a lane of marks for what is not finite.
void draw_lines(UiState& state, NormsPanel& view, const History& history, Statistic s, float height);
/// A field to search, and the layers at the selected step (the last one where none is) as a table that is
/// sorted by clicks on its titles.
void draw_layer_table(UiState& state, NormsPanel& view, const History& history, Statistic s, float height);

}  // namespace nanquest::viewer
