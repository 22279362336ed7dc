/// The seal of a snapshot: a check before libhdf5 parses a single byte.
///
/// libhdf5 1.10 has crashed on files with a few flipped bits. So a snapshot starts with a user block of 512
/// bytes (HDF5 readers skip it) with a magic line, the format version, the length of the file and a hash of
/// everything in it except the bytes of large tensors. Those have checksums of their own, which are checked
/// when they are read. A list of the places of those tensors follows the last HDF5 byte. So opening a file of
/// many GB reads its tables and metadata once and none of its tensors. Damage of any kind is refused here. A
/// forged file can have a valid seal, so the reader's other guards do not rely on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

inline constexpr std::uint64_t kSealBytes = 512;  ///< size of the user block
inline constexpr std::uint64_t kSealedApart = 1
                                              << 16;  ///< tensors of fewer bytes are hashed with the metadata

/// Where the bytes of one large tensor lie in the file.
struct Extent {
  std::uint64_t offset = 0;  ///< from the first byte of the file
  std::uint64_t bytes = 0;
};

/// What the user block says about the format.
struct SealInfo {
  int major = 0, minor = 0;
  std::uint64_t file_bytes = 0;
};

/// Seals the whole HDF5 file behind `fd` (open for reading and writing; its user block must be kSealBytes)
/// and fsyncs it. `path` is for messages.
Status seal(int fd, const std::string& path, int major, int minor, std::vector<Extent> tensors);

/// The same for the closed file at `path`.
Status seal_file(const std::string& path, int major, int minor, std::vector<Extent> tensors);

/// Checks the seal: nanquest's, a major version ≤ `newest_major`, complete, undamaged. `bad_file` says which
/// check failed.
Result<SealInfo> check_seal(const std::string& path, int newest_major);

}  // namespace nanquest
