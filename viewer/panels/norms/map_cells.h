/// The cells of the map of layers. Inside of ImPlot::BeginPlot; private to the norms panel.
#pragma once

#include <cstddef>
#include <vector>

#include "viewer/panels/norms/plots.h"

namespace nanquest::viewer {

/// Positions of a map's columns, in whole pixels, so that neighbours meet without a gap.
class CellPlaces {
 public:
  CellPlaces(const History& history, const HeatMap& map);
  float left(std::size_t column) const { return left_[column]; }
  float right(std::size_t column) const { return right_[column]; }
  float middle(std::size_t column) const { return (left_[column] + right_[column]) / 2; }
  bool meet(std::size_t column) const { return right_[column] == left_[column + 1]; }

 private:
  std::vector<float> left_, right_;
};

/// Makes `view.drawn` of its map, rows, range and choices, if any of these changed. `pixels`: of the rows in
/// view.
void make_lines(NormsPanel& view, float pixels);

/// Draws the lines in view, non-finite cells on top in colours and shapes of their own.
void draw_lines_of_cells(const NormsPanel& view, const CellPlaces& places);

/// Draws a frame around a row, and the row itself at least 3 pixels high: the chosen layer is seen however
/// many rows share a pixel. `first`, `last`: the steps in view.
void draw_chosen_row(const NormsPanel& view, const CellPlaces& places, std::size_t row, double first,
                     double last);

/// Pixels above the first row, for marks that are wider than a step.
float lane_height();
/// A mark in the lane above every column that holds something bad: one bad step among a million is visible.
void draw_lane(const HeatMap& map, const CellPlaces& places);

/// The bar of colours, with the values at its ends, and which percentiles these are.
void scale_bar(const ColourRange& colours, const MapChoices& choices, bool still, float height);

}  // namespace nanquest::viewer
