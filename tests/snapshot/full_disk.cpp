#include "tests/snapshot/full_disk.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace nanquest::testing {
namespace {

bool limited = false;
dev_t device = 0;
long long space = 0;
off_t reserved = 0;  ///< bytes of the one file written that fallocate has already taken from `space`

ssize_t limited_pwrite(const char* real_name, int fd, const void* data, size_t bytes, off_t offset) {
  using Pwrite = ssize_t (*)(int, const void*, size_t, off_t);
  const auto real = reinterpret_cast<Pwrite>(::dlsym(RTLD_NEXT, real_name));
  struct stat st {};
  if (limited && ::fstat(fd, &st) == 0 && st.st_dev == device && S_ISREG(st.st_mode) &&
      offset + static_cast<off_t>(bytes) > reserved) {
    if (space <= 0) {
      errno = ENOSPC;
      return -1;
    }
    if (static_cast<long long>(bytes) > space) bytes = static_cast<size_t>(space);  // a short write, as real disks do
    space -= static_cast<long long>(bytes);
  }
  return real(fd, data, bytes, offset);
}

}  // namespace

void set_disk_space(const std::string& directory, long long bytes) {
  struct stat st {};
  limited = ::stat(directory.c_str(), &st) == 0;
  device = st.st_dev;
  space = bytes;
}

}  // namespace nanquest::testing

extern "C" {
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  using namespace nanquest::testing;
  if (limited) {
    const long long more = offset + bytes - reserved;
    if (more > space) {
      errno = ENOSPC;
      return -1;
    }
    space -= more;
    reserved = offset + bytes;
    return 0;
  }
  using Fallocate = int (*)(int, int, off_t, off_t);
  return reinterpret_cast<Fallocate>(::dlsym(RTLD_NEXT, "fallocate"))(fd, mode, offset, bytes);
}
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  return nanquest::testing::limited_pwrite("pwrite", fd, data, bytes, offset);
}
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t offset) {
  return nanquest::testing::limited_pwrite("pwrite64", fd, data, bytes, offset);
}
}
