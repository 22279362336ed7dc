/// The part of the HDF5 format that a snapshot needs, encoded as bytes. Internal to this room.
///
/// Source: "HDF5 File Format Specification Version 3.0": superblock (II.A), object header version 2
/// (IV.A.1.b) and its messages (IV.A.2), Jenkins' lookup3 as checksum (VIII).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "probe/base/dtype.h"
#include "probe/snapshot/sink.h"

namespace nanquest::hdf5 {

inline constexpr std::uint64_t kNowhere = ~std::uint64_t{0};  ///< the format's undefined address
inline constexpr std::size_t kSuperblockBytes = 48;
/// Longest name of a link: a message is smaller than 64 KiB.
inline constexpr std::size_t kMostName = 65000;

/// The messages of one object.
class Messages {
 public:
  void dataspace(const std::vector<std::uint64_t>& shape);
  void datatype(DType dtype);
  /// Fill value never written, space allocated at once.
  void no_fill();
  /// `bytes` in one contiguous block at `address`.
  void contiguous(std::uint64_t address, std::uint64_t bytes);
  /// Marks the object as a group; its links are messages, too.
  void group();
  /// A hard link; `name` has at most kMostName bytes.
  void link(std::string_view name, std::uint64_t address);
  void attribute(const Attribute& attribute);
  void attributes(Attributes all) {
    for (const Attribute& a : all) attribute(a);
  }

  /// Appends the object's header to `out`.
  void append_to(std::string& out) const;

 private:
  void begin(int message, int flags);
  void end();

  std::string bytes_;
  std::size_t open_ = 0, attributes_ = 0;
};

/// The superblock of a file whose first `base` bytes are a user block, whose HDF5 part ends at `end` (from
/// the first byte of the file) and whose root group has its header at `root` (from `base`, as all addresses
/// are).
std::string superblock(std::uint64_t base, std::uint64_t end, std::uint64_t root);

/// Bob Jenkins' lookup3 ("hashlittle", initial value 0).
std::uint32_t lookup3(std::string_view bytes);

}  // namespace nanquest::hdf5
