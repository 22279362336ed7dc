/// The drawing of the norms panel: layers by step as a heat map, as lines and as a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "viewer/model/history.h"
#include "viewer/model/layer_range.h"
#include "viewer/model/layer_rows.h"
#include "viewer/model/layer_table.h"
#include "viewer/model/map_colours.h"
#include "viewer/model/run_curve.h"
#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

/// The heat map that is shown, a line a layer, and what it was made of.
struct ShownMap {
  HeatMap map;
  Statistic statistic = Statistic::gradient;
  std::size_t first = 0, last = 0, columns = 0;
  std::uint64_t content = 0;  ///< Session::content()
  int changed = -1;           ///< frame in which other rows were asked for
};

/// The same as it is drawn. A line is one of LayerRows, or several neighbours if they are lower than a pixel.
struct ShownLines {
  HeatMap cells;
  std::vector<std::uint8_t> tints;  ///< of each cell, a place in the range; 0 without a finite value
  std::vector<std::size_t> layers;  ///< how many each line is of
  ColourRange colours;
  std::size_t rows_per_line = 1;
  std::string of;  ///< what it was made of
};

/// What a person chose of the map.
struct MapChoices {
  float cut = 2;  ///< colour_range's
  CellValue value = CellValue::largest;
};

struct NormsPanel : PanelView {
  enum Plots { both, heat_map, lines, table };

  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  Plots plots = both;
  /// Folds or unfolds rows of the map; those that are shown stay where they are.
  void change_rows(const std::function<void(LayerRows&)>& change);

  ShownMap map;
  LayerRows rows;  ///< of the map
  ShownLines drawn;
  MapChoices choices;
  LayerRange layer_range;  ///< rows of the map that are shown
  /// A layer's curve, smoothed if that is asked for; smoothed ones are kept as long as nothing changes.
  RunCurve curve_of(const Session& session, std::size_t layer);
  /// The chosen layer in the runs beside, likewise.
  const std::vector<RunCurve>& beside_of(const Session& session);

  ShownValues values[kStatistics];
  char search[128] = "";
  LayerTable layers;      ///< of the table, as it was drawn last
  std::string layers_of;  ///< what it was made of
  bool focus_search = false;

 private:
  std::map<std::size_t, std::shared_ptr<const Pyramid>> smooth_;  ///< by layer
  std::string smooth_of_;                                         ///< what they were made of
  std::vector<RunCurve> beside_;
  std::string beside_key_;
};

}  // namespace nanquest::viewer
