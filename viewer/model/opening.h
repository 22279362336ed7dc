/// Opening: a run as a person opens it, with what they kept of it: how they left it, their notes.
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
  std::string trouble;   ///< what of that could not be read or kept, in words; "" for nothing
};

/// Opens a run or a snapshot, notes it among the recent ones, and takes up what was kept of it. Errors as of
/// Session::open; what a person kept never keeps them from the run. Reads, and writes into `folders` alone.
Result<Opening> open_as_left(const std::string& path, const OwnFolders& folders,
                             Progress* progress = nullptr);

}  // namespace nanquest::viewer
