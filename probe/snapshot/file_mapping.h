/// Which memory of this process is an unmodified private mapping (mmap) of a file.
///
/// Shared mappings are skipped: they are made for files that are written through, or for shared data, while
/// every library maps weights privately. Programs and libraries are skipped too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "probe/snapshot/reference.h"

namespace nanquest {

class FileMappings {
 public:
  /// The current mappings (/proc/self/maps); none if the system does not list them. Throws only if memory
  /// runs out.
  static FileMappings now();

  /// The file and range that these bytes are a private mapping of; nothing unless the whole range is in a
  /// regular file that still has its name and is large enough. Reads no memory.
  std::optional<FilePlace> find(const void* address, std::uint64_t bytes) const;

 private:
  struct Mapping {
    std::uint64_t end, offset, device, inode;
    std::string file;
  };
  std::map<std::uint64_t, Mapping> mappings_;  ///< by first address
};

/// hash_bytes of the file's bytes if they equal those at `memory`, which is read only if the file can be
/// read. Nothing, and no crash, if the file was truncated meanwhile.
std::optional<std::uint64_t> hash_if_same(const FilePlace& place, const void* memory, std::uint64_t bytes);

}  // namespace nanquest
