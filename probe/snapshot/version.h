/// The library that reads and writes the files: its version, and its own printing.
#pragma once

#include <string>

namespace nanquest {

/// Two lines without a final newline: "HDF5 1.10.8" (the library in use) and "file format 1.0" (the version
/// that this build writes; it reads the same major version with every minor one).
std::string file_versions();

/// For programs, once: libhdf5 prints nothing, not even at the end of a process that read a damaged file. A
/// library inside another program must not call it.
void quiet_hdf5();

}  // namespace nanquest
