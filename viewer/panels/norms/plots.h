/// The two plots of the norms panel. They share the range of steps and the selection.
#pragma once

#include "viewer/panels/norms/view.h"

namespace nanquest::viewer {

/// With more layers than this their lines are drawn as a bundle, since single pixel columns could not be
/// seen.
inline constexpr std::size_t kFewLayers = 64;
/// What the plots show of rows [first, last) in a plot of this width: a column for every two pixels, fewer if
/// there are many layers. Made again when any of that changes. In a frame that shows other rows than the one
/// before (while zooming) there are fewer columns, and the next frame has them all: a picture that is coarse
/// for a moment is better than a late one.
const HeatMap& shown_map(UiState& state, ShownMap& shown, const History& history, Statistic s, float pixels);
/// "colours from the 2nd to the 98th percentile of the values in view", "… from the smallest to the largest
/// value in view".
std::string colours_text(const MapChoices& choices);
/// A button, and what it opens: words to search, the range of colours, the value of a cell, folding.
void draw_map_settings(UiState& state, NormsPanel& view);
/// Layers × steps, log colour. Non-finite cells are drawn on top, in colours and shapes of their own.
void draw_heat_map(UiState& state, NormsPanel& view, const History& history, Statistic s, float height);
/// One line per layer, log scale, with a lane of marks for non-finite values.
void draw_lines(UiState& state, NormsPanel& view, const History& history, Statistic s, float height);
/// A search field, and the layers at the selected step (or the last one) as a table that is sorted by clicks
/// on its titles.
void draw_layer_table(UiState& state, NormsPanel& view, const History& history, Statistic s, float height);

}  // namespace nanquest::viewer
