/// What a thread asks of the file system, counted: the program's own definitions of the C library's functions
/// count and hand on. Link file_calls.cpp into the program itself; the C++ library comes by it as well.
#pragma once

#include <cstdint>

namespace nanquest::testing {

struct FileCalls {
  std::uint64_t metadata =
      0;                      ///< opens that found or made a file, stat, mkdir, rename, unlink, listing, sync
  std::uint64_t in_vain = 0;  ///< opens of a file that is not there: what a rank does while it waits
  std::uint64_t reads = 0, writes = 0, bytes_written = 0;
};

/// Of this thread, since it began.
FileCalls file_calls();

FileCalls operator-(const FileCalls& after, const FileCalls& before);

}  // namespace nanquest::testing
