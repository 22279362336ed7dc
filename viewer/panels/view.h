/// PanelView: the drawing of one panel, with what it remembers between frames. Each panel has its own; what
/// panels tell each other goes through the session's selection and UiState.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "viewer/model/step_range.h"
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
};

class PanelView {
 public:
  virtual ~PanelView() = default;
  /// Draws the panel into the current window. Needs current contexts of Dear ImGui and ImPlot; main thread.
  virtual void draw(UiState& state) = 0;
  /// Puts the cursor into the panel's filter, if it has one, in the next frame.
  virtual void find() {}
};

}  // namespace nanquest::viewer
