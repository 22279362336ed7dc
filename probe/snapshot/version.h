/// What reads and writes the files, for `--version`.
#pragma once

#include <string>

namespace nanquest {

/// Two lines without an end of line: "HDF5 1.10.8" (the library in use) and "file format 1.0" (what this
/// build writes; it reads the same major version and every minor one).
std::string file_versions();

}  // namespace nanquest
