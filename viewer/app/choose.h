/// The command line: what it asks for, and which part of a session it selects.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/session.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

struct Arguments {
  std::string path, screenshot, report, panel = "all", text, csv, size = "1280x800", statistic, layer, tensor,
                                        theme, what_if, layout;
  std::optional<std::int64_t> op, step, element;
  std::vector<std::string> actions;
  std::vector<std::string> compare;  ///< runs to be put beside
  double smooth = 0;
  float scale = 1;
  int frames = -1;
  double seconds = 0;
  bool wants_text = false, fresh = false, sandbox = false;
  std::string taste, taste_file;  ///< what a child process of --sandbox is to do
  double sandbox_seconds = 120;
  std::vector<std::string> drops;  ///< onto the window
};

/// Selects what the command line names, in addition to what the session chose itself. `usage` if it isn't
/// there, `bad_file` if a requested incident can't be shown.
Status select(Session& session, const Arguments& arguments);

/// Of a folder of runs, and of a comparison of two steps, only the list can be shown: `usage` for a report,
/// another panel, a selection or a comparison.
Status check_folder(const Session& session, const Arguments& arguments, Panel panel);

/// Panels about one incident need one that can be read: `bad_file` otherwise.
Status check_shown(const Session& session, Panel panel);

}  // namespace nanquest::viewer
