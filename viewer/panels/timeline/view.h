/// The drawing of the timeline: lanes of events, and one curve per scalar, on one range of steps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/timeline.h"
#include "viewer/panels/view.h"
#include "viewer/ui/curves.h"

namespace nanquest::viewer {

struct TimelinePanel : PanelView {
  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  std::vector<TimelineCurve> curves;
  std::vector<TimelineEvent> events;
  std::string place_of;                       ///< whose headroom is among them
  double smoothing_of = 0;                    ///< with which they were smoothed
  std::uint64_t made_of = 0;                  ///< Session::content() that they were made of
  std::map<std::string, ShownValues> values;  ///< by column
  std::optional<Measure> measure;             ///< what a drag measured last; a click ends it
};

}  // namespace nanquest::viewer
