/// Counts a thread's file-system calls: the program defines the C library's functions itself, counts and
/// passes on. Link file_calls.cpp into the program itself, so that the C++ library's calls are counted too.
#pragma once

#include <cstdint>

namespace nanquest::testing {

struct FileCalls {
  std::uint64_t metadata =
      0;                      ///< opens that found or made a file, stat, mkdir, rename, unlink, listing, sync
  std::uint64_t in_vain = 0;  ///< opens of a file that does not exist: what a waiting rank does
  std::uint64_t reads = 0, writes = 0, bytes_written = 0;
};

/// Of this thread, since it began.
FileCalls file_calls();

FileCalls operator-(const FileCalls& after, const FileCalls& before);

}  // namespace nanquest::testing
