/// The state of a run as its files tell it: when it was last written, and how it ended.
#pragma once

#include <filesystem>
#include <string>

#include "probe/snapshot/run_dir.h"

namespace nanquest::viewer {

/// When the manifest or a series was last written; the smallest time if neither is there. Reads the file
/// system.
std::filesystem::file_time_type last_written(const RunListing& listing);

/// How long ago that was, in whole units: "under a minute", "3 hours"; "" for the smallest time.
std::string age_text(std::filesystem::file_time_type written);

/// The same as a time, "2025-01-02T03:04:05Z".
std::string utc_text(std::filesystem::file_time_type written);

/// "finished: went on in fp32", or for how long a running run has written nothing. `status` and `outcome`:
/// those of the manifest.
std::string status_text(const std::string& status, const std::string& outcome,
                        std::filesystem::file_time_type written);

}  // namespace nanquest::viewer
