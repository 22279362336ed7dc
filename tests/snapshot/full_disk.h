/// A full or broken disk without a disk: this program's own pwrite and fallocate stand before the C
/// library's, for libhdf5 too.
#pragma once

#include <cerrno>
#include <functional>
#include <string>

namespace nanquest::testing {

/// From now on, files on the file system of `directory` take `bytes` bytes together; then writes fail with
/// `error`. Without `can_reserve` the file system knows no fallocate.
void set_disk_space(const std::string& directory, long long bytes, bool can_reserve = true,
                    int error = ENOSPC);

/// Runs `body` in a child that exits in the ordinary way afterwards (libhdf5 then closes what is still open,
/// and must live through it). Returns what `body` did, or "the child died: …".
std::string in_child(const std::function<std::string()>& body);

}  // namespace nanquest::testing
