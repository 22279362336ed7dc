/// RunFolder: the runs below a directory, a line each: what became of each, how far it came, how it was
/// started. Sorted and searched in the window, in text and in CSV alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "viewer/model/page.h"
#include "viewer/model/progress.h"

namespace nanquest::viewer {

/// One run of a folder.
struct RunLine {
  std::string path;   ///< of its directory
  std::string name;   ///< below the folder: "night/run-3"
  std::string cause;  ///< of the incident that would be opened first: "FP16_OVERFLOW", "not
                      ///< replayed yet"; without one, the label of its first finding; else ""
  std::size_t incidents = 0;
  std::optional<double> last_step;  ///< that its series holds
  std::filesystem::file_time_type written;
  std::string state;    ///< "finished", "running"; "unknown" without a manifest
  std::string outcome;  ///< how it ended; why its manifest can't be read
  std::string command;  ///< as typed
  bool operator==(const RunLine&) const = default;
};

/// What runs are sorted by, in the order of the columns.
enum class RunColumn : std::uint8_t { name, cause, incidents, steps, age, state, command };
inline constexpr std::array<const char*, 7> kRunColumns = {"Run", "Cause",  "Incidents", "Last step",
                                                           "Age", "Status", "Command"};

struct RunFolder {
  std::string path;
  std::vector<RunLine> runs;  ///< the last written first
  bool whole = true;          ///< false: there are too many directories, some were not looked into
  bool operator==(const RunFolder&) const = default;

  /// "12 runs in night", and that not all directories were looked into.
  std::string headline() const;
  /// Rows of `runs` whose name, cause, status or command hold all of `words`, sorted by a column; equal ones
  /// keep their order.
  std::vector<std::size_t> rows(const std::string& words, RunColumn by, bool descending) const;
};

/// A line's texts, one for each of kRunColumns.
std::array<std::string, kRunColumns.size()> cells_of(const RunLine& run);

/// Reads the runs in a directory and in the directories of it: manifests, verdicts, and the last row of each
/// series. `bad_file` if there is none. Links to directories are not followed.
Result<RunFolder> read_run_folder(const std::string& path, Progress* progress = nullptr);

/// The same as a table, in the order of `runs`.
PageTable run_table(const RunFolder& folder);

}  // namespace nanquest::viewer
