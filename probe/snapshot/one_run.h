/// one_run: whether files belong to one run, by their contents.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// The run that a snapshot or manifest names, and its path.
struct RunMark {
  std::string path;
  std::int32_t world_size = 1;
  std::map<std::string, std::string> config;  ///< may be empty
};

/// `usage`, naming both files, if they are of runs with different numbers of processes or other settings. Of
/// the command only the program and its arguments count: not the interpreter's path, which may differ between
/// machines, and not the --local_rank that some launchers add; for a worker started by Ray only the cluster
/// counts.
Status of_one_run(const RunMark& one, const RunMark& other);

/// The program that wrote a file: "nanquest 0.1.0, torch 2.15.0".
std::string written_by(const SnapshotDoc& doc);
/// Ranks grouped by the program that wrote their files, if there are several: "nanquest 0.1.0, torch 2.15.0:
/// ranks 0, 2; nanquest 0.0.9, torch 2.15.0: rank 1". Otherwise "".
std::string different_writers(const std::map<std::string, std::set<std::int32_t>>& ranks_by_writer);

}  // namespace nanquest
