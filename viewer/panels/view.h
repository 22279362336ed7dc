/// PanelView: the drawing of one panel, with its memory between frames. Each panel has its own; panels
/// communicate through the session's selection and UiState.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viewer/model/links.h"
#include "viewer/model/loader.h"
#include "viewer/model/opening.h"
#include "viewer/model/replaying.h"
#include "viewer/model/step_range.h"
#include "viewer/panels/action.h"
#include "viewer/panels/layouts.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

struct UiOptions {
  Panel panel = Panel::all;            ///< one panel alone fills the window; `all` is the docked layout
  bool still = false;                  ///< for pictures: no menu hints, nothing that follows the mouse
  OwnFolders folders = {};             ///< in which recent runs are kept, and how each was left
  bool own_theme = false;              ///< the theme was asked for: no run changes it
  const LayoutInfo* layout = nullptr;  ///< null: as it was last, or the default
};

/// What the user stored about a run that was just opened.
struct Arrival {
  Desk desk;
  bool resumed = false;  ///< what was selected then is selected
  bool there = false;
};

/// What all panels see and may change.
struct UiState {
  UiState(Session& shown, UiOptions chosen, Loader* reads = nullptr)
      : session(shown), options(std::move(chosen)), loader(reads) {}
  Session& session;
  UiOptions options;
  StepRange steps;              ///< that plots show
  std::string message;          ///< last message, at the right of the menu bar
  std::optional<Panel> wanted;  ///< a panel to bring to the front in the next frame
  bool follow = true;           ///< news of a run are read as they come
  Replaying replaying;          ///< nanquest-replay, as the user started it
  bool unkept = false;          ///< notes were written or removed that are not in their file yet

  /// Runs after all panels are drawn: selecting may open another incident, which replaces the history and
  /// trace that are being drawn.
  std::vector<std::function<void()>> later;

  /// Reads on a thread of its own; null: reading blocks.
  Loader* loader = nullptr;

  /// Requests reading. With a loader the result is there in a later frame, otherwise at once: so not while
  /// anything is drawn of what it replaces.
  void read(Loader::Errand errand);
  /// Shows another run or snapshot instead, as it was left, or an error. How the present one is left is
  /// stored.
  void open(const std::string& path) { open_beside(path, {}); }
  /// The same with these runs beside it; an error of theirs becomes the message.
  void open_beside(const std::string& path, const std::vector<std::string>& beside);
  /// Starts nanquest-replay on the open incident; if that fails, the reason becomes the message.
  void replay(ReplayTask task);
  /// Stores how the run is left, and the notes on it, in the background.
  void keep_desk();
  /// What is being read: "reading step 90, 40 %"; "" for nothing.
  std::string doing() const { return loader == nullptr ? "" : loader->doing(); }

  /// Selects the target of the link, and brings the panel that shows it to the front; later.
  void go(const Link& link);
  /// The same, in the incident that the note was written on.
  void go(const Note& note);
  /// Selects a step, and opens its incident if it has one; later. `layer`: chosen then, if there is one.
  void select_step(double step, const std::string& layer = "");
  /// Opens an incident; later.
  void select_incident(int row);
  /// Goes back to a selection.
  void restore(const Selection& before);
  /// Fits the range of steps to those of all runs that are shown.
  void fit_steps();
  /// Puts one more run beside those that are shown, or shows an error; "" ends that for all.
  void compare(const std::string& path);
  /// Something else is shown now: drops the visited places.
  std::function<void()> on_other_run = {};
  /// How the run is left now.
  std::function<Desk()> left = {};
  /// A run was opened: what was stored about it, if anything, is restored in the next frame.
  std::optional<Arrival> arrived = {};

 private:
  std::string name_of(int row) const;
};

class PanelView {
 public:
  virtual ~PanelView() = default;
  /// Draws the panel into the current window. Needs current contexts of Dear ImGui and ImPlot; main thread.
  virtual void draw(UiState& state) = 0;
  /// Actions of this panel, besides the general ones. They refer to this view and to `state`.
  virtual std::vector<Action> actions(UiState&) { return {}; }
};

}  // namespace nanquest::viewer
