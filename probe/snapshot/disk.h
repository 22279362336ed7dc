/// The disk under one HDF5 file that is being written. Internal to this room.
///
/// libhdf5 does not survive a write that fails: what it could not flush makes the process crash when it
/// exits. So it is given a file driver of our own that always reports success and remembers the first failure
/// instead. After it nothing more goes to the disk; metadata are kept in memory, so that libhdf5 can close
/// the file in good order, and raw data are dropped. Who writes asks `ok()` after every step. (Driver
/// interface: "HDF5 Virtual File Layer".)
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

  /// Makes an empty HDF5 file at `path`, or empties the one that is there. On failure an empty Id, and
  /// `failure` says why. This object must outlive the file; one file per object.
  Id create(const std::string& path, hid_t creation, hid_t access);

  /// False from the first write on that the system refused.
  bool ok() const { return error_ == 0; }
  /// What went wrong while `doing` something with `path`: the system's refusal if there was one, else
  /// libhdf5's words.
  Error failure(const std::string& path, std::string_view doing, ErrorCode otherwise) const;

  /// Asks the disk for room for what `file` holds now and `bytes` more, before anything is written: what does
  /// not fit can then be tried again later, while a failed write is final. File systems that can't reserve
  /// are taken at their word. The size of the file does not change.
  Status reserve(hid_t file, const std::string& path, std::uint64_t bytes);

 private:
  friend struct DiskFile;
  Id driver_;      ///< stays registered until the file is closed: the library gives its own hold up too early
  int fd_ = -1;    ///< of the open file, owned by the driver
  int error_ = 0;  ///< errno of the first failure
  std::uint64_t reserved_ = 0;
};

}  // namespace nanquest::h5
