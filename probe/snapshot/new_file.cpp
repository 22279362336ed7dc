#include "probe/snapshot/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "probe/snapshot/descriptor.h"

namespace nanquest {

NewFile make_new_file(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return errno == EEXIST ? NewFile::exists : NewFile::failed;
  const bool written = write_at(file, text.data(), text.size(), 0);
  int why = written ? 0 : errno;
  if (::close(file) != 0 && why == 0) why = errno;
  if (written && why == 0) return NewFile::made;
  ::unlink(path.c_str());  // full disk: an incomplete file would make other processes wait for its text
  errno = why == 0 ? ENOSPC : why;
  return NewFile::failed;
}

}  // namespace nanquest
