/// What the panels remember between frames and tell each other, beside the session's selection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/panels/registry.h"

namespace nanquest::viewer {

struct UiOptions {
  Panel panel = Panel::all;  ///< one panel alone fills the window; `all` is the docked layout
  bool still = false;        ///< for pictures: no menu hints, nothing that follows the mouse
};

/// Values that the lines of a statistic are shown between.
struct ShownValues {
  double low = 0, high = 0;  ///< as they were fitted; 0, 0: never
  bool own = false;          ///< the person has chosen others since
};

/// What the panels remember between frames and tell each other, beside the session's selection.
struct UiState {
  UiState(Session& shown, UiOptions wanted) : session(shown), options(wanted) {}
  Session& session;
  UiOptions options;
  char filter[128] = "";
  std::vector<OpId> visible_ops;  ///< ops that pass the filter
  std::string filtered_for;       ///< filter and snapshot that visible_ops was made for
  bool focus_filter = false;
  bool scroll_to_op = true;
  double view_first = 0, view_last = 1;   ///< steps shown by the norms panel; both plots share them
  double data_first = 0, data_last = -1;  ///< steps that there were in the last frame
  bool fit_view = true;
  bool fit_values = true;  ///< the lines' values as well, also where a person has zoomed
  ShownValues values[kStatistics];
  int norms_view = 0;  ///< 0 both, 1 heat map, 2 lines
  std::int64_t plane = 0;
  std::string message;  ///< last thing worth telling, at the right of the menu bar
  Selection seen;       ///< of the last frame, to notice changes made anywhere

  /// All steps and all values from the next frame on.
  void show_all() { fit_view = fit_values = true; }
};

}  // namespace nanquest::viewer
