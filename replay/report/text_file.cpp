#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "replay/report/report.h"

namespace nanquest {
namespace {

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::io, path + ": " + what + ": " + std::strerror(errno),
          "is the directory writable and not full?"};
}

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

Status write_text_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return io_error(path, "can't be written");
  bool good = write_all(fd, text) && ::fsync(fd) == 0;
  const int failure = errno;
  good = ::close(fd) == 0 && good;
  if (good && ::rename(temporary.c_str(), path.c_str()) == 0) {
    const std::string parent = std::filesystem::path(path).parent_path().string();
    if (const int dir = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        dir >= 0) {
      ::fsync(dir);
      ::close(dir);
    }
    return {};
  }
  errno = good ? errno : failure;
  const Error error = io_error(path, "can't be written");
  ::unlink(temporary.c_str());
  return error;
}

}  // namespace nanquest
