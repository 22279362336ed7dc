/// The drawing of the timeline: lanes of what happened, and a curve a scalar, on one range of steps.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

struct TimelinePanel : PanelView {
  void draw(UiState& state) override;

  std::map<std::string, ShownValues> values;  ///< by column
  std::uint64_t fitted = 0;                   ///< StepRange::asked() when the values were last fitted
};

}  // namespace nanquest::viewer
