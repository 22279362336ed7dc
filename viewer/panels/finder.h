/// Finder: a field and the list of its results. One for the actions, one for places of the run.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace nanquest::viewer {

class Finder {
 public:
  struct Entry {
    std::string label, hint;
    std::function<void()> run;
  };

  /// `title` of the window; `invites`: the hint in the empty field; `none`: the text without results.
  Finder(const char* title, const char* invites, const char* none = "Nothing of that name")
      : title_(title), invites_(invites), none_(none) {}
  void open();
  bool is_open() const { return open_; }
  const char* text() const { return text_; }
  /// Draws it while it is open. Enter or a click runs an entry; Esc, or a click elsewhere, closes.
  void draw(const std::vector<Entry>& entries);

 private:
  void draw_list(const std::vector<Entry>& entries, bool enter);

  const char *title_, *invites_, *none_;
  char text_[4096] = "";  // paths are typed as well
  bool open_ = false, fresh_ = false;
  int chosen_ = 0;
};

}  // namespace nanquest::viewer
