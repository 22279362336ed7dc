/// kept: files that must not be written while they are shown.
#pragma once

#include <string>

#include "probe/base/result.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The whole path of a file or folder, without links and dots and without a "/" at its end. Asks the file
/// system.
std::string whole_path(const std::string& path);

/// The run directory that a snapshot lies in (run/incidents/step-00000131.r0.h5, and its recordings); "" for
/// one that was taken out of its run. Asks the file system.
std::string run_around(const std::string& snapshot);

/// A picture or report is written into a folder that is there: `bad_file` for another, which would be a typing
/// error. Asks the file system.
Status folder_is_there(const std::string& path);

/// Nothing is written into what is looked at: `usage` for a path inside the run, inside the run of a
/// snapshot, and for the snapshot itself. One rule for pictures and reports, from the window and from the
/// command line. Asks the file system.
Status may_write(const Session& session, const std::string& path);

}  // namespace nanquest::viewer
