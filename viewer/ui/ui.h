/// viewer/ui: how it is shown. Dear ImGui and ImPlot; no OpenGL and no window: whoever owns a frame calls
/// `draw`.
///
///     Ui ui(session, {});
///     ImGui::NewFrame(); ui.draw(); ImGui::Render();
///
/// Needs current contexts of Dear ImGui and ImPlot with apply_style() done. Main thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "viewer/model/panels.h"
#include "viewer/model/session.h"

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
  double view_first = 0, view_last = 1;  ///< steps shown by the norms panel; both plots share them
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

/// One function a panel; each draws into the current window. One file each.
void draw_verdict(UiState& state);
void draw_norms(UiState& state);
void draw_trace(UiState& state);
void draw_tensor(UiState& state);
void draw_runs(UiState& state);

class Ui {
 public:
  /// Keeps a reference to `session`.
  Ui(Session& session, UiOptions options) : state_(session, options) {}
  /// One frame: menu, shortcuts, panels.
  void draw();
  UiState& state() { return state_; }
  bool wants_to_quit() const { return quit_; }
  /// Brings the default arrangement back in the next frame.
  void reset_layout() {
    layout_made_ = false;
    forget_layout_ = true;
  }

 private:
  void draw_menu();
  void draw_help();
  void draw_panels();
  void shortcuts();
  void reload();
  void step_panel(int by);

  UiState state_;
  bool quit_ = false, help_ = false, layout_made_ = false, forget_layout_ = false;
  int focused_ = 0;
  int focus_request_ = -1;
};

}  // namespace nanquest::viewer
