/// The disk under one HDF5 file that is being written. Internal to this room.
///
/// libhdf5 does not survive a failed write: data that it could not flush makes the process crash at exit. So
/// it gets a file driver that always reports success and remembers the first failure. After a failure nothing
/// more is written to the disk. Metadata are kept in memory, so that libhdf5 can close the file properly; raw
/// data are dropped. Callers check `ok()` after every step. (Driver interface: "HDF5 Virtual File Layer".)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "probe/base/result.h"
#include "probe/snapshot/h5.h"

namespace nanquest::h5 {

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;  // the open file points to it
  Disk& operator=(const Disk&) = delete;

  /// Creates an empty HDF5 file at `path`, or truncates an existing one. On failure the Id is empty and
  /// `failure` says why. This object must outlive the file; one file per object.
  Id create(const std::string& path, hid_t creation, hid_t access);

  /// False after the first write that the system refused.
  bool ok() const { return error_ == 0; }
  /// The error of `doing` something with `path`: the system's refusal if there was one, else libhdf5's
  /// message.
  Error failure(const std::string& path, std::string_view doing, ErrorCode otherwise) const;

  /// Reserves disk space for the contents of `file` and `bytes` more before anything is written. If there is
  /// no room, the caller can try again later, while a failed write is final. File systems that can't reserve
  /// count as having room. The size of the file does not change.
  Status reserve(hid_t file, const std::string& path, std::uint64_t bytes);

 private:
  friend struct DiskFile;
  Id driver_;    ///< registered until the file is closed, because the library releases its own reference too
                 ///< early
  int fd_ = -1;  ///< of the open file, owned by the driver
  int error_ = 0;  ///< errno of the first failure
  std::uint64_t reserved_ = 0;
};

}  // namespace nanquest::h5
