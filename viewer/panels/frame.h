/// The frame around the panels: menu, shortcuts, layout. Dear ImGui and ImPlot; no OpenGL and no window: the
/// owner of a frame calls `draw`.
///
///     Ui ui(session, {});
///     ImGui::NewFrame(); ui.draw(); ImGui::Render();
///
/// Needs current contexts of Dear ImGui and ImPlot with apply_style() done. Main thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "viewer/model/search.h"
#include "viewer/model/strip.h"
#include "viewer/panels/action.h"
#include "viewer/panels/diff.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/folder.h"
#include "viewer/panels/layouts.h"
#include "viewer/panels/notes.h"
#include "viewer/panels/open_dialog.h"
#include "viewer/panels/picture.h"
#include "viewer/panels/trail.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

class Ui {
 public:
  /// Keeps a reference to `session`, and reads with `loader` if there is one: both must outlive it.
  Ui(Session& session, UiOptions options, Loader* loader = nullptr);
  /// Shows what was read since. True if there is anything new to draw. Not between frames alone: `draw`
  /// begins with it.
  bool collect();
  /// True while something is read or replayed: `collect` should be called often.
  bool waits() const { return !state_.doing().empty() || state_.replaying.runs(); }
  /// One frame: menu, shortcuts, panels.
  void draw();
  UiState& state() { return state_; }
  /// The list of runs, of a session with a folder.
  FolderView& folder() { return folder_; }
  /// The comparison of two steps, of a session that is one.
  DiffView& diff() { return diff_; }
  /// What a panel draws with, and its memory.
  PanelView& view(Panel panel) { return *views_[static_cast<std::size_t>(panel)]; }
  /// All actions that are possible now, in the order of menus.
  std::vector<Action> actions();
  /// Runs the action with that name; false if there is none now.
  bool run_named(const std::string& name);
  /// The picture to take of the frame that was drawn last, returned once; `picture_taken`: whether it was
  /// taken.
  std::optional<PictureSaver::Due> picture_due() { return pictures_.due(); }
  void picture_taken(const std::string& path, const Status& taken);
  /// The name of what was done last by menu, keys or list; "" for nothing.
  const std::string& last_action() const { return last_action_; }
  bool wants_to_quit() const { return quit_; }
  /// How the run is left now; `resume` restores that, as far as the run allows. Parts that are not visible
  /// yet are restored two frames later.
  Desk desk();
  void resume(const Arrival& arrival);
  /// Call when another run is shown: the history of places visited in the old one is dropped.
  void begin_anew() {
    trail_ = {};
    state_.steps.show_all();
  }
  /// Arranges the panels again in the next frame.
  void show_layout(const LayoutInfo& layout) {
    layout_ = &layout;
    layout_made_ = false;
    forget_layout_ = true;
    state_.wanted = layout.front.front();  // the keyboard would hold another tab in front of it
  }
  /// The panels are arranged as stored: by the layout of that name.
  void assume_layout(std::string_view name) {
    if (const LayoutInfo* known = layout_from_name(name); known != nullptr && !forget_layout_)
      layout_ = known;
  }
  /// The layout that was requested last; the user may have moved panels since.
  const LayoutInfo& layout() const { return *layout_; }

 private:
  bool look_at_replay();
  const Strip& strip();
  void draw_menu(const std::vector<Action>& actions);
  void draw_help(const std::vector<Action>& actions);
  void draw_panels();
  void draw_panel(Panel panel);
  void draw_alone(const char* title, const std::function<void()>& draw);
  bool asks() const;
  void draw_finders(const std::vector<Action>& actions);
  void run(const Action& action);
  void reload();
  void step_panel(int by);
  void step_incident(int by);
  void go_to(const Trail::Place* place);
  void copy(const char* what, std::function<Result<std::string>(Session&)> text);
  void add_file(std::vector<Action>& out);
  void add_view(std::vector<Action>& out);
  void add_size(std::vector<Action>& out);
  void add_go(std::vector<Action>& out);
  void add_replay(std::vector<Action>& out);
  void add_copy(std::vector<Action>& out);

  UiState state_;
  bool quit_ = false, help_ = false, layout_made_ = false, forget_layout_ = false;
  bool unread_ = false;  ///< a replay has ended, and its files were not read since
  const LayoutInfo* layout_ = all_layouts().data();
  std::vector<std::unique_ptr<PanelView>> views_;  ///< in the order of the list
  FolderView folder_;
  DiffView diff_;
  Panel focused_ = Panel{};
  Trail trail_;
  Strip strip_;
  std::uint64_t strip_content_ = 0;  ///< Session::content() that it was made of
  Finder palette_{"Actions", "Do what?"}, search_{"Find", "Ops, layers, tensors, steps, samples"};
  OpenDialog open_{"Open", "Open", &UiState::open}, compare_{"Compare", "Compare with", &UiState::compare};
  NotesDialog notes_;
  PictureSaver pictures_;
  Desk kept_;                 ///< what was stored about the run when it was opened
  std::vector<Panel> front_;  ///< to be brought to the front once they are drawn
  std::string last_action_;
  std::vector<Hit> hits_;
  std::string hits_of_;  ///< words and content that they were found for
};

}  // namespace nanquest::viewer
