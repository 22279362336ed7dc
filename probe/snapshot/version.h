/// The library that reads and writes the files: its version, its own talk.
#pragma once

#include <string>

namespace nanquest {

/// Two lines without an end of line: "HDF5 1.10.8" (the library in use) and "file format 1.0" (what this
/// build writes; it reads the same major version and every minor one).
std::string file_versions();

/// For programs, once: libhdf5 prints nothing of its own, not even at the end of a process that met a damaged
/// file. Who is loaded into another program leaves that to it.
void quiet_hdf5();

}  // namespace nanquest
