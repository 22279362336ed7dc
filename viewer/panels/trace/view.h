/// The drawing of the trace panel: the ops of the step, and where the chosen one stands among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/op_graph.h"
#include "viewer/model/op_order.h"
#include "viewer/model/step_map.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// Ops that the graph shows on each level.
inline constexpr std::size_t kGraphRows = 4;

struct TracePanel : PanelView {
  void draw(UiState& state) override;
  std::vector<Action> actions(UiState& state) override;

  char filter[128] = "";
  std::vector<OpId> visible_ops;  ///< ops that pass the filter, in `order`
  OpOrder order;
  std::string filtered_for;  ///< filter and reading that visible_ops was made for
  bool focus_filter = false;
  bool scroll_to_op = true;
  float scrolled_at = 0;         ///< height of the list then: in another one the op may be out of sight
  std::int32_t seen_op = kNone;  ///< of the last frame, to notice choices made anywhere
  StepMap map;
  std::uint64_t map_of = 0;     ///< Session::reading() that it was made of
  std::vector<char> bad_parts;  ///< of the map, one a pixel
  std::vector<OpId> seen_ops;   ///< those of the list that are in sight
  OpGraph graph;
  OpId graph_of;
  std::uint64_t graph_reading = 0;
  bool graph_shown = false;
  std::optional<bool> graph_asked;  ///< by the user; otherwise it is shown where there is room
};

}  // namespace nanquest::viewer
