/// kept: files that must not be written while they are shown.
#pragma once

#include <string>

#include "probe/base/result.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The absolute path of a file or folder, without links and dots and without a trailing "/". Reads the file
/// system.
std::string whole_path(const std::string& path);

/// The run directory that contains a snapshot (run/incidents/step-00000131.r0.h5, and its recordings); "" for
/// one that was moved out of its run. Reads the file system.
std::string run_around(const std::string& snapshot);

/// The folder above a run or a folder of runs; "" if there is none. Compares names only.
std::string folder_above(const Session& session);

/// A picture or report is only written into an existing folder: `bad_file` otherwise, because it is probably
/// a typing error. Reads the file system.
Status folder_is_there(const std::string& path);

/// Nothing is written into what is shown: `usage` for a path inside the run, inside the run of a snapshot,
/// and for the snapshot itself. One rule for pictures and reports, from the window and from the command line.
/// Reads the file system.
Status may_write(const Session& session, const std::string& path);

}  // namespace nanquest::viewer
