/// The drawing of the norms panel: layers by step as a heat map, as lines and as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/history.h"
#include "viewer/model/layer_range.h"
#include "viewer/model/layer_table.h"
#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

/// The heat map that is shown, and what it was made of.
struct ShownMap {
  HeatMap map;
  std::vector<std::uint8_t>
      tints;  ///< of each cell, a place on the scale of colours; 0 without a finite value
  Statistic statistic = Statistic::gradient;
  std::size_t first = 0, last = 0, columns = 0;
  std::uint64_t content = 0;  ///< Session::content()
  int changed = -1;           ///< frame in which other rows were asked for
};

struct NormsPanel : PanelView {
  enum Plots { both, heat_map, lines, table };

  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  Plots plots = both;
  ShownMap map;
  LayerRange layer_range;  ///< of the map
  ShownValues values[kStatistics];
  char search[128] = "";
  LayerTable layers;      ///< of the table, as it was drawn last
  std::string layers_of;  ///< what it was made of
  bool focus_search = false;
};

}  // namespace nanquest::viewer
