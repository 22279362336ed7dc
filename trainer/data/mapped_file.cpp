#include "trainer/data/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace nanquest::trainer {

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Error{ErrorCode::bad_file, path + ": " + what, "give a complete file that can be read"};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return bad(std::strerror(errno));
  struct stat about {};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(file);
    return bad("not a file");
  }
  const auto size = static_cast<std::size_t>(about.st_size);
  void* memory = size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : nullptr;
  const int failure = errno;
  ::close(file);
  if (size == 0) return bad("the file is empty");
  if (memory == MAP_FAILED) return bad(std::strerror(failure));
  MappedFile mapped;
  mapped.size_ = size;
  mapped.data_ = std::shared_ptr<const std::byte>(
      static_cast<const std::byte*>(memory),
      [size](const std::byte* p) { ::munmap(const_cast<std::byte*>(p), size); });
  return mapped;
}

}  // namespace nanquest::trainer
