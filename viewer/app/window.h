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
  int frames = -1;     ///< closes by itself after this many frames, for tests; -1 never
  double seconds = 0;  ///< closes by itself after this time and prints how many frames were drawn on stderr;
                       ///< 0 never
  std::vector<std::string> actions = {};  ///< to be done once the run is shown, for tests
  std::vector<std::string> drops = {};    ///< then dropped onto it one after the other, for tests
  std::optional<Theme> theme = {};        ///< nothing: the layout that was used last
};

/// Opens the window and returns when it is closed. The loader does all reading; results are shown as they
/// arrive. Follows the run: looks for news once a second. Draws only when something happens: input, news, a
/// new age of the data. Stores its layout with the user's settings, never with the data. `unsupported`
/// without a display. `arrival`: what was stored about the run, filled by the loader; at the end it holds how
/// the run is left.
Status run_window(Session& session, Loader& loader, const UiOptions& options, Arrival& arrival,
                  const WindowOptions& window);

}  // namespace nanquest::viewer
