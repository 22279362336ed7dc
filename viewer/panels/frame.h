/// The frame around the panels: menu, shortcuts, layout. Dear ImGui and ImPlot; no OpenGL and no window:
/// whoever owns a frame calls `draw`.
///
///     Ui ui(session, {});
///     ImGui::NewFrame(); ui.draw(); ImGui::Render();
///
/// Needs current contexts of Dear ImGui and ImPlot with apply_style() done. Main thread only.
#pragma once

#include <memory>
#include <vector>

#include "viewer/panels/trail.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

class Ui {
 public:
  /// Keeps a reference to `session`.
  Ui(Session& session, UiOptions options);
  /// One frame: menu, shortcuts, panels.
  void draw();
  UiState& state() { return state_; }
  /// What a panel draws with, and remembers.
  PanelView& view(Panel panel) { return *views_[static_cast<std::size_t>(panel)]; }
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
  void go_to(const Trail::Place* place);

  UiState state_;
  bool quit_ = false, help_ = false, layout_made_ = false, forget_layout_ = false;
  std::vector<std::unique_ptr<PanelView>> views_;  ///< in the order of the list
  Panel focused_ = Panel{};
  Trail trail_;
};

}  // namespace nanquest::viewer
