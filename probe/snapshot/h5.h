/// The thin layer between the snapshot room and the HDF5 C library: handles that close themselves, a scope in
/// which the library prints nothing, and its error stack as one line. Internal to this room.
///
/// Calls only numbered names of the 1.10 API, so that no mapping macro can change a signature.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/snapshot/sink.h"

namespace nanquest::h5 {

/// Owns one HDF5 identifier; closes it with the function of its kind.
class Id {
 public:
  using Close = herr_t (*)(hid_t);
  Id() = default;
  Id(hid_t id, Close close) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Id() { reset(); }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// Closes now; negative if the library failed to.
  herr_t reset() {
    const hid_t id = std::exchange(id_, -1);
    return id >= 0 ? close_(id) : 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// While it exists, the library prints nothing on this thread and loads no plugins; the destructor restores
/// both settings, which belong to the host process. Failures are remembered instead (see last_failure).
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  unsigned plugins_ = 0;
};

/// A failure that the library reported on this thread since the last Quiet began: the last one with an errno,
/// else the last one (failures after a full disk are only its consequence). It is stored when it happens,
/// because the library forgets its errors with every further call, even a close.
struct Failure {
  std::string what;      ///< innermost message, one line
  int system_error = 0;  ///< errno in it, 0 if none
};
Failure last_failure();

/// The last failure as an Error about `path`: `io` if the system refused, else `otherwise`.
Error failure(const std::string& path, std::string_view doing, ErrorCode otherwise);

/// The file type of a dtype: LE integers and IEEE floats; fp16 and bf16 as 16-bit float types; fp8 as uint8;
/// bool as h5py's enum; complex as the compound {r, i}. Memory type and file type are always the same,
/// because the library's own conversion rewrites NaN payloads.
Id type_of(DType dtype);

/// Creates a contiguous dataset and writes `data` into it (nothing is written for 0 elements). An empty shape
/// makes a scalar. Returns the open dataset; on failure an empty Id, with the failure on the stack.
Id write_dataset(hid_t parent, const char* name, DType dtype, const std::vector<hsize_t>& shape,
                 const void* data);

/// Attributes: fixed-length UTF-8 strings (cut to kMostAttributeText bytes) and numbers. False on failure.
bool set_attribute(hid_t object, const char* name, std::string_view text);
bool set_attribute(hid_t object, const char* name, std::int64_t number);
bool set_attribute(hid_t object, const char* name, std::uint64_t number);
/// The attributes that every element carries.
bool set_kind(hid_t object, std::string_view kind, std::int64_t version = 1);

/// Reads an attribute of exactly that kind (scalar; strings fixed-length, at most 4096 bytes). False if it is
/// missing or of another kind.
bool get_attribute(hid_t object, const char* name, std::string& text);
bool get_attribute(hid_t object, const char* name, std::int64_t& number);
bool get_attribute(hid_t object, const char* name, std::uint64_t& number);

}  // namespace nanquest::h5
