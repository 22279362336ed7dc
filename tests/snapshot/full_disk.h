/// Simulates a full or broken disk: this program's own pwrite and fallocate replace the C library's, for
/// libhdf5 too.
#pragma once

#include <cerrno>
#include <functional>
#include <string>

namespace nanquest::testing {

/// From now on, files on the file system of `directory` can take `bytes` bytes together; then writes fail
/// with `error`. Without `can_reserve` the file system has no fallocate.
void set_disk_space(const std::string& directory, long long bytes, bool can_reserve = true,
                    int error = ENOSPC);

/// Runs `body` in a child that exits normally afterwards (libhdf5 then closes open files and must survive
/// that). Returns the result of `body`, or "the child died: …".
std::string in_child(const std::function<std::string()>& body);

}  // namespace nanquest::testing
