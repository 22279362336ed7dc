/// A full disk without a disk: this program's own pwrite stands before the C library's, for libhdf5 too.
#pragma once

#include <string>

namespace nanquest::testing {

/// From now on, files on the file system of `directory` take `bytes` bytes together, then ENOSPC.
void set_disk_space(const std::string& directory, long long bytes);

}  // namespace nanquest::testing
