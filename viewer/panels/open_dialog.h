/// The dialog that asks for a run: a field for its path, and the recent ones below it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "viewer/model/settings.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

class OpenDialog {
 public:
  /// `title` of the window; `verb`: "Open", what is done with the chosen path.
  OpenDialog(const char* title, const char* verb, void (UiState::*act)(const std::string& path))
      : finder_(title, "Path of a run or a snapshot", "Type or paste a path; none was opened before"),
        verb_(verb),
        act_(act) {}
  void open();
  bool is_open() const { return finder_.is_open(); }
  void draw(UiState& state);

 private:
  struct Listed;
  void list(UiState& state);

  Finder finder_;
  const char* verb_;
  void (UiState::*act_)(const std::string&);
  std::shared_ptr<Listed> listed_;  ///< null: not listed yet
};

}  // namespace nanquest::viewer
