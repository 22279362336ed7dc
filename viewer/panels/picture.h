/// Pictures of panels: what is on the screen, as a PNG file. The owner of the pixels takes them
/// (app/window.cpp); this decides which, when, and into what file.
#pragma once

#include <optional>
#include <string>

#include "imgui.h"
#include "viewer/panels/finder.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// "story-step131-verdict.png", with a number where files of that name are there already; in `folder` ("" for
/// the working directory).
std::string picture_path(const Session& session, Panel panel, const std::string& folder = "");

class PictureSaver {
 public:
  struct Due {
    std::string path;
    ImVec2 from, to;  ///< corners of the panel, in the coordinates of Dear ImGui
  };

  /// Requests a picture of the panel, in front and without menus and lists above it. `path`: "" for a default
  /// name. If that is impossible, the reason becomes the message.
  void want(UiState& state, Panel panel, const std::string& path = "");
  /// Asks for the name of the file.
  void ask(Panel panel);
  bool is_open() const { return name_.is_open(); }
  /// Draws the question; call it in each frame, after the panels.
  void draw(UiState& state);
  /// The picture to take of the frame that was drawn last, returned once.
  std::optional<Due> due();

 private:
  Finder name_{"Save as", "Name of a PNG file", "Type a name, as in loss.png"};
  Panel panel_ = Panel{};
  std::string path_;
  int frames_ = 0;  ///< until it is taken
};

}  // namespace nanquest::viewer
