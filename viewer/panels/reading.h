/// What stands where something is being read: how far it is, and a button that ends it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// "reading step 90, 40 %", a bar and Stop; nothing while nobody waits for anything. `wide`: on lines of its
/// own.
void draw_reading(UiState& state, bool wide);
/// What a panel has read by itself, once for every thing that it shows. Where somebody stopped that, it is
/// for them to say when to go on.
class Wish {
 public:
  /// Has it read, unless something is being read or it was asked for before. `of`: which thing, of those that
  /// the files hold now; `what`: in words.
  void ask(UiState& state, const std::string& of, const std::string& what,
           std::function<void(Session&)> read);
  /// What stands where it is missing: how far it is, or a button that asks again.
  void draw(UiState& state);

 private:
  std::string asked_for_;
  std::uint64_t stops_ = 0;  ///< Loader::stops() then
};

/// A panel of a session of which nothing was read: what is going on, or why there is nothing to show.
void draw_nothing(UiState& state);

}  // namespace nanquest::viewer
