/// POSIX files for this room: a descriptor that closes itself, complete reads and writes, errors as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "probe/base/result.h"

namespace nanquest {

/// Owns a file descriptor; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// Closes now; false (errno set) if the system reports a late write error.
  bool close();

 private:
  int fd_ = -1;
};

/// Reads exactly `bytes` at `offset`; false with errno set (EIO at an early end of file).
bool read_at(int fd, void* out, std::size_t bytes, std::uint64_t offset);

/// False, with errno set to EFBIG, if a file of that many bytes is above the limit of this process (`ulimit
/// -f`): a write beyond it would not fail but kill the process by SIGXFSZ.
bool may_grow_to(std::uint64_t bytes);

/// Writes exactly `bytes` at `offset`; false with errno set.
bool write_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset);

/// `io` error of the current errno: "PATH: DOING failed: No space left on device", with a hint.
Error system_error(const std::string& path, std::string_view doing);

/// fsyncs the directory that holds `path`, so that a rename in it survives a power cut.
Status sync_directory_of(const std::string& path);

/// Creates the directories above `path`.
Status make_parents(const std::string& path);

/// A name beside `path` that no other writer uses: same directory, so that rename is atomic.
std::string temporary_beside(const std::string& path);

}  // namespace nanquest
