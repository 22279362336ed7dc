/// The drawing of the trace panel: the ops of the step, and where the chosen one stands among them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/op_order.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

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
};

}  // namespace nanquest::viewer
