#include "trainer/checkpoint/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace nanquest::trainer {
namespace {

Error refused(const std::string& path, const char* doing, int number) {
  return Error{ErrorCode::io, path + ": " + doing + ": " + std::strerror(number),
               number == ENOSPC ? "free some space" : "check that the folder exists and is writable"};
}

/// An open file descriptor, closed on leaving.
class File final : public ByteSink {
 public:
  File(const std::string& path, int flags)
      : path_(path), descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~File() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool open() const { return descriptor_ >= 0; }

  Status write(const void* data, std::size_t size) override {
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = ::write(descriptor_, bytes, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return refused(path_, "write failed", errno);
      bytes += n;
      size -= static_cast<std::size_t>(n);
    }
    return {};
  }

  Status sync() {
    if (::fsync(descriptor_) != 0) return refused(path_, "fsync failed", errno);
    return {};
  }

 private:
  std::string path_;
  int descriptor_;
};

Status fill_and_sync(const std::string& path, const std::function<Status(ByteSink&)>& fill) {
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file.open()) return refused(path, "can't be written", errno);
  if (Status s = fill(file); !s) return s;
  return file.sync();
}

}  // namespace

Status write_atomically(const std::string& path, const std::function<Status(ByteSink&)>& fill) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  if (Status s = fill_and_sync(temporary, fill); !s) {
    ::unlink(temporary.c_str());
    return s;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    return refused(path, "rename failed", number);
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  File folder(parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY);
  if (!folder.open()) return refused(parent, "can't be opened", errno);
  return folder.sync();
}

}  // namespace nanquest::trainer
