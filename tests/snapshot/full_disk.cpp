#include "tests/snapshot/full_disk.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace nanquest::testing {
namespace {

bool limited = false, reserves = true;
int refusal = ENOSPC;
dev_t device = 0;
long long space = 0;
off_t reserved = 0;  ///< bytes of the file being written for which fallocate has already taken `space`

ssize_t limited_pwrite(const char* real_name, int fd, const void* data, size_t bytes, off_t offset) {
  using Pwrite = ssize_t (*)(int, const void*, size_t, off_t);
  const auto real = reinterpret_cast<Pwrite>(::dlsym(RTLD_NEXT, real_name));
  struct stat st {};
  if (!limited || ::fstat(fd, &st) != 0 || st.st_dev != device || !S_ISREG(st.st_mode))
    return real(fd, data, bytes, offset);
  // A full disk accepts writes that need no new space; a broken one accepts none.
  const off_t taken = refusal == ENOSPC ? std::max(st.st_size, reserved) : offset;
  const off_t end = offset + static_cast<off_t>(bytes);
  const off_t possible = std::min(end, std::max(offset, taken) + static_cast<off_t>(space));
  if (end > taken) {
    if (possible <= offset) {
      errno = refusal;
      return -1;
    }
    space -= possible - std::max(offset, taken);
    bytes = static_cast<size_t>(possible - offset);  // maybe a short write, as on real disks
  }
  return real(fd, data, bytes, offset);
}

}  // namespace

void set_disk_space(const std::string& directory, long long bytes, bool can_reserve, int error) {
  struct stat st {};
  limited = ::stat(directory.c_str(), &st) == 0;
  device = st.st_dev;
  space = bytes;
  reserves = can_reserve;
  refusal = error;
}

std::string in_child(const std::function<std::string()>& body) {
  int out[2];
  if (::pipe(out) != 0) return "no pipe";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    const std::string text = body();
    std::exit(::write(out[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 2);
  }
  ::close(out[1]);
  std::string text;
  char piece[4096];
  for (ssize_t n; (n = ::read(out[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(n));
  ::close(out[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? text : "the child died: " + std::to_string(status) + " " + text;
}

}  // namespace nanquest::testing

extern "C" {
__attribute__((visibility("default"))) int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  using namespace nanquest::testing;
  if (limited && !reserves) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (limited) {
    const long long more = offset + bytes - reserved;
    if (more <= 0) return 0;
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
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* data, size_t bytes,
                                                        off_t offset) {
  return nanquest::testing::limited_pwrite("pwrite64", fd, data, bytes, offset);
}
}
