/// one_run: whether files belong to one run, by what they say of it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// What a snapshot or a manifest says of its run, and where it lies.
struct RunMark {
  std::string path;
  std::int32_t world_size = 1;
  std::map<std::string, std::string> config;  ///< may be empty
};

/// `usage`, naming both files, if they are of runs of different numbers of processes or with other settings.
/// Of the command only the program and its arguments count: not the interpreter, which lies elsewhere on
/// another machine, and not the --local_rank that some launchers add; of a worker that Ray started only the
/// cluster.
Status of_one_run(const RunMark& one, const RunMark& other);

/// What wrote a file: "nanquest 0.1.0, torch 2.15.0".
std::string written_by(const SnapshotDoc& doc);
/// Ranks by what wrote their files, where not all were written by the same: "nanquest 0.1.0, torch 2.15.0:
/// ranks 0, 2; nanquest 0.0.9, torch 2.15.0: rank 1". "" where they were.
std::string different_writers(const std::map<std::string, std::set<std::int32_t>>& ranks_by_writer);

}  // namespace nanquest
