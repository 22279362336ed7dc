/// The drawing of the norms panel: layers by step as a heat map and as lines.
#pragma once

#include "viewer/model/history.h"
#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

struct NormsPanel : PanelView {
  enum Plots { both, heat_map, lines };

  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  Plots plots = both;
  ShownValues values[kStatistics];
};

}  // namespace nanquest::viewer
