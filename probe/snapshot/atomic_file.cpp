#include "probe/snapshot/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "probe/snapshot/descriptor.h"

namespace nanquest {

struct AtomicFile::Impl {
  ~Impl() { discard(); }
  void discard() {
    file.close();
    if (!temporary.empty()) ::unlink(temporary.c_str());
    temporary.clear();
  }

  std::string path, temporary;
  Descriptor file;
  std::size_t size = 0;
};

AtomicFile::AtomicFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;
AtomicFile& AtomicFile::operator=(AtomicFile&&) noexcept = default;
AtomicFile::~AtomicFile() = default;

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::usage, "a file name is empty", ""};
  if (Status made = make_parents(path); !made) return made.error();
  struct stat st {};
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return Error{ErrorCode::io, path + ": is there and not a file", "choose another name"};
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  const std::string temporary = temporary_beside(path);
  impl->file = Descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!impl->file) return system_error(path, "creating");
  impl->temporary = temporary;
  return AtomicFile(std::move(impl));
}

Status AtomicFile::append(const void* data, std::size_t bytes) {
  if (!impl_ || !impl_->file) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (!write_at(impl_->file.get(), data, bytes, impl_->size)) return system_error(impl_->path, "writing");
  impl_->size += bytes;
  return {};
}

Status AtomicFile::commit(Durable durable) {
  if (!impl_ || !impl_->file) return Error{ErrorCode::usage, "this writer is spent", ""};
  Status status;
  // Some file systems report a full disk only at fsync.
  if (durable == Durable::now && ::fsync(impl_->file.get()) != 0)
    status = system_error(impl_->path, "writing");
  if (!impl_->file.close() && status) status = system_error(impl_->path, "closing");
  if (status && std::rename(impl_->temporary.c_str(), impl_->path.c_str()) != 0)
    status = system_error(impl_->path, "renaming");
  if (!status) {
    impl_->discard();
    return status;
  }
  impl_->temporary.clear();
  return durable == Durable::now ? sync_directory_of(impl_->path) : Status{};
}

Status write_file_atomically(const std::string& path, std::string_view bytes, Durable durable) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file) return file.error();
  if (Status appended = file->append(bytes.data(), bytes.size()); !appended) return appended;
  return file->commit(durable);
}

Result<std::string> read_whole_file(const std::string& path, std::size_t max_bytes) try {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0)
    return Error{ErrorCode::bad_file, path + ": " + std::strerror(errno), "check the path"};
  if (!S_ISREG(st.st_mode)) return Error{ErrorCode::bad_file, path + ": not a file", "check the path"};
  const auto bytes = static_cast<std::size_t>(st.st_size);
  if (bytes > max_bytes)
    return Error{
        ErrorCode::bad_file,
        path + ": has " + std::to_string(bytes) + " bytes, the limit is " + std::to_string(max_bytes), ""};
  std::string text(bytes, '\0');
  if (!read_at(file.get(), text.data(), bytes, 0))
    return Error{ErrorCode::bad_file, path + ": reading failed: " + std::strerror(errno), ""};
  return text;
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::bad_file, path + ": needs more memory than there is", ""};
}

}  // namespace nanquest
