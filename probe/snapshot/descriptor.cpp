#include "probe/snapshot/descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace nanquest {
namespace {

const char* way_out(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space there or choose another directory";
    case EROFS:
    case EACCES:
    case EPERM:
      return "choose a directory that can be written";
    case ENOTDIR:
    case EEXIST:
      return "a part of the path is a file; choose another directory";
    case ENAMETOOLONG:
      return "choose a shorter path";
    default:
      return "check the disk, or choose another directory";
  }
}

std::string parent_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

/// Calls `move` until all bytes are moved, at most `most` at a time; the kernel may move fewer than asked, or
/// be interrupted.
template <class Byte, class Move>
bool in_pieces(Byte* at, std::size_t bytes, std::uint64_t offset, std::size_t most, Move move) {
  while (bytes > 0) {
    const ssize_t n = move(at, std::min(bytes, most), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EIO;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
    offset += static_cast<std::uint64_t>(n);
  }
  return true;
}

}  // namespace

bool Descriptor::close() {
  const int fd = std::exchange(fd_, -1);
  return fd < 0 || ::close(fd) == 0;
}

bool read_at(int fd, void* out, std::size_t bytes, std::uint64_t offset) {
  return in_pieces(static_cast<char*>(out), bytes, offset, 1u << 30,
                   [&](char* at, std::size_t n, off_t from) { return ::pread(fd, at, n, from); });
}

bool may_grow_to(std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)
    return true;
  errno = EFBIG;
  return false;
}

bool write_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) {
  if (bytes > 0 && !may_grow_to(offset + bytes)) return false;
  // For a write of a MB the kernel looks for pages of that size and may have to make some: that was five to
  // twenty times slower than pieces of 64 KiB.
  return in_pieces(static_cast<const char*>(data), bytes, offset, 1u << 16,
                   [&](const char* at, std::size_t n, off_t to) { return ::pwrite(fd, at, n, to); });
}

Error system_error(const std::string& path, std::string_view doing) {
  const int error = errno;
  return {ErrorCode::io, path + ": " + std::string(doing) + " failed: " + std::strerror(error),
          way_out(error)};
}

Status sync_directory_of(const std::string& path) {
  const std::string parent = parent_of(path);
  const Descriptor directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems can't sync a directory (EINVAL); nothing more can be done there.
  if (!directory || (::fsync(directory.get()) != 0 && errno != EINVAL))
    return system_error(parent, "syncing the directory");
  return {};
}

Status make_parents(const std::string& path) {
  std::error_code error;
  const std::string parent = parent_of(path);
  std::filesystem::create_directories(parent, error);
  if (!error) return {};
  errno = error.value();
  return system_error(parent, "making the directory");
}

std::string temporary_beside(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
}

}  // namespace nanquest
