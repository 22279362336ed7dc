/// PanelView: the drawing of one panel, with what it remembers between frames. Each panel has its own; what
/// panels tell each other goes through the session's selection and UiState.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/model/links.h"
#include "viewer/model/step_range.h"
#include "viewer/panels/action.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

struct UiOptions {
  Panel panel = Panel::all;  ///< one panel alone fills the window; `all` is the docked layout
  bool still = false;        ///< for pictures: no menu hints, nothing that follows the mouse
};

/// What all panels see and may change.
struct UiState {
  UiState(Session& shown, UiOptions chosen) : session(shown), options(chosen) {}
  Session& session;
  UiOptions options;
  StepRange steps;              ///< that plots show
  std::string message;          ///< last thing worth telling, at the right of the menu bar
  std::optional<Panel> wanted;  ///< a panel to bring to the front in the next frame
  bool follow = true;           ///< what a run writes is read as it comes

  /// Selects where the link leads, and brings the panel that shows it to the front.
  void go(const Link& link) {
    viewer::follow(session, link);
    wanted = panel_of(link.kind);
  }
};

class PanelView {
 public:
  virtual ~PanelView() = default;
  /// Draws the panel into the current window. Needs current contexts of Dear ImGui and ImPlot; main thread.
  virtual void draw(UiState& state) = 0;
  /// What a person can do with the panel, beside what all can. They refer to this view and to `state`.
  virtual std::vector<Action> actions(UiState&) { return {}; }
};

}  // namespace nanquest::viewer
