/// one_run: whether files belong to one run, by what they say of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "probe/base/result.h"

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

}  // namespace nanquest
