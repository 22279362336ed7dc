/// Which memory of this process is a file: what mmap put there, privately, and nobody has written to since.
///
/// Shared mappings are passed over: who maps a file to be written through, or as data, shares it; weights are
/// mapped privately by every library that maps them. So are
/// programs and libraries passed over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "probe/snapshot/reference.h"

namespace nanquest {

class FileMappings {
 public:
  /// As the system has them now (/proc/self/maps); none where it doesn't tell. Never throws but for memory.
  static FileMappings now();

  /// The file and range that these bytes are a private mapping of; nothing unless the whole range lies in a
  /// regular file that still has its name and reaches so far. Reads no memory.
  std::optional<FilePlace> find(const void* address, std::uint64_t bytes) const;

 private:
  struct Mapping {
    std::uint64_t end, offset, device, inode;
    std::string file;
  };
  std::map<std::uint64_t, Mapping> mappings_;  ///< by the first address
};

/// hash_bytes of the file's bytes if they are those at `memory`, which is read only if the file can be. A
/// file that was cut off meanwhile is an answer (none), not a crash.
std::optional<std::uint64_t> hash_if_same(const FilePlace& place, const void* memory, std::uint64_t bytes);

}  // namespace nanquest
