/// Shown while something is being read: how far it is, and a button that ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// "reading step 90, 40 %", a bar and Stop; nothing while nothing is being read. `wide`: on lines of its own.
void draw_reading(UiState& state, bool wide);
/// What nanquest-replay is doing, and a button that cancels it; nothing while it does not run. `wide`: on
/// lines of its own.
void draw_replaying(UiState& state, bool wide);
/// The same for the open incident; if its replay failed, why; and a button that starts it if it would show
/// more. Nothing in pictures.
void draw_replay_now(UiState& state);
/// A button that starts a replay of the open incident.
void replay_button(UiState& state, bool small);

/// What a panel reads automatically, once for every thing that it shows. After a stop by the user, only the
/// user restarts it.
class Wish {
 public:
  /// Requests reading, unless something is being read or it was requested before. `of`: which thing, of those
  /// that the files hold now; `what`: in words.
  void ask(UiState& state, const std::string& of, const std::string& what,
           std::function<void(Session&)> read);
  /// Shown where it is missing: how far it is, or a button that requests it again.
  void draw(UiState& state);

 private:
  std::string asked_for_;
  std::uint64_t stops_ = 0;  ///< value of Loader::stops() then
};

/// A panel of a session without data: what is going on, or why there is nothing to show.
void draw_nothing(UiState& state);

}  // namespace nanquest::viewer
