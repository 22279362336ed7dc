/// The window: GLFW and OpenGL 3.2.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/session.h"
#include "viewer/panels/frame.h"
#include "viewer/ui/theme.h"

namespace nanquest::viewer {

struct WindowOptions {
  int width = 1280, height = 800;
  float scale = 1;
  int frames = -1;     ///< close by itself after so many, for tests; -1 never
  double seconds = 0;  ///< close by itself after so long and say on stderr how many were drawn; 0 never
  std::vector<std::string> actions = {};  ///< to be done once the run is shown, for tests
  std::vector<std::string> drops = {};    ///< then dropped onto it one after the other, for tests
  std::optional<Theme> theme = {};        ///< nothing: the one that was chosen last
};

/// Opens the window and stays until it is closed. All reading is the loader's: what it is at when the window
/// opens is shown as it comes. Follows the run: looks for news once a second. Draws only when something
/// happens: input, news, another age of the data. Remembers its layout beside the user's settings, never
/// beside the data. `unsupported` without a display.
/// `arrival`: what was kept of the run, filled by what reads it; at the end it says how the run is left.
Status run_window(Session& session, Loader& loader, const UiOptions& options, Arrival& arrival,
                  const WindowOptions& window);

}  // namespace nanquest::viewer
