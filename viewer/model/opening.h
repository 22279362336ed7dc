/// Opening: opens a run together with what the user stored about it: how they left it, their notes.
#pragma once

#include <string>

#include "viewer/model/desk.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// Where a person's own files are; "" for nowhere.
struct OwnFolders {
  std::string settings;  ///< settings_folder(): the recent runs
  std::string state;     ///< state_folder(): desks
};

struct Opening {
  Session session;
  Desk desk;             ///< as it was kept; its `first` is of now
  bool resumed = false;  ///< the session's selection is that of the desk
  std::string trouble;   ///< what of that could not be read or stored, in words; "" if all could
};

/// Opens a run or a snapshot, adds it to the recent ones, and restores what was stored about it. Errors as
/// for Session::open; errors of stored data never prevent opening the run. Reads, and writes only into
/// `folders`.
Result<Opening> open_as_left(const std::string& path, const OwnFolders& folders,
                             Progress* progress = nullptr);

}  // namespace nanquest::viewer
