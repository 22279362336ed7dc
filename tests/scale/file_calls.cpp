#include "tests/scale/file_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace nanquest::testing {
namespace {

thread_local FileCalls calls;

template <class Function>
Function* real(Function*, const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (!found) found = ::dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
  return reinterpret_cast<Function*>(found);
}

int opened(int fd) {
  ++(fd < 0 && errno == ENOENT ? calls.in_vain : calls.metadata);
  return fd;
}

mode_t mode_in(int flags, std::va_list& more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

ssize_t wrote(ssize_t bytes) {
  ++calls.writes;
  if (bytes > 0) calls.bytes_written += static_cast<std::uint64_t>(bytes);
  return bytes;
}

}  // namespace

FileCalls file_calls() {
  return calls;
}

FileCalls operator-(const FileCalls& after, const FileCalls& before) {
  return {after.metadata - before.metadata, after.in_vain - before.in_vain, after.reads - before.reads,
          after.writes - before.writes, after.bytes_written - before.bytes_written};
}

}  // namespace nanquest::testing

using nanquest::testing::calls;
using nanquest::testing::real;

// Defines a function that counts its call and passes it on.
#define NANQUEST_COUNTED(Result, name, parameters, arguments)                         \
  __attribute__((visibility("default"))) Result name parameters {                     \
    static const auto next = real(static_cast<Result(*) parameters>(nullptr), #name); \
    ++calls.metadata;                                                                 \
    return next arguments;                                                            \
  }
#define NANQUEST_OPEN(name)                                                                     \
  __attribute__((visibility("default"))) int name(const char* path, int flags, ...) {           \
    static const auto next = real(static_cast<int (*)(const char*, int, ...)>(nullptr), #name); \
    std::va_list more;                                                                          \
    va_start(more, flags);                                                                      \
    const mode_t mode = nanquest::testing::mode_in(flags, more);                                \
    va_end(more);                                                                               \
    return nanquest::testing::opened(next(path, flags, mode));                                  \
  }
#define NANQUEST_OPENAT(name)                                                                        \
  __attribute__((visibility("default"))) int name(int at, const char* path, int flags, ...) {        \
    static const auto next = real(static_cast<int (*)(int, const char*, int, ...)>(nullptr), #name); \
    std::va_list more;                                                                               \
    va_start(more, flags);                                                                           \
    const mode_t mode = nanquest::testing::mode_in(flags, more);                                     \
    va_end(more);                                                                                    \
    return nanquest::testing::opened(next(at, path, flags, mode));                                   \
  }

extern "C" {
NANQUEST_OPEN(open)
NANQUEST_OPEN(open64)
NANQUEST_OPENAT(openat)
NANQUEST_OPENAT(openat64)
NANQUEST_COUNTED(FILE*, fopen, (const char* path, const char* mode), (path, mode))
NANQUEST_COUNTED(FILE*, fopen64, (const char* path, const char* mode), (path, mode))
NANQUEST_COUNTED(int, stat, (const char* path, struct stat* into), (path, into))
NANQUEST_COUNTED(int, stat64, (const char* path, struct stat64* into), (path, into))
NANQUEST_COUNTED(int, lstat, (const char* path, struct stat* into), (path, into))
NANQUEST_COUNTED(int, lstat64, (const char* path, struct stat64* into), (path, into))
NANQUEST_COUNTED(int, fstat, (int fd, struct stat* into), (fd, into))
NANQUEST_COUNTED(int, fstat64, (int fd, struct stat64* into), (fd, into))
NANQUEST_COUNTED(int, mkdir, (const char* path, mode_t mode), (path, mode))
NANQUEST_COUNTED(int, rename, (const char* from, const char* to), (from, to))
NANQUEST_COUNTED(int, unlink, (const char* path), (path))
NANQUEST_COUNTED(int, unlinkat, (int at, const char* path, int flags), (at, path, flags))
NANQUEST_COUNTED(int, fsync, (int fd), (fd))
NANQUEST_COUNTED(DIR*, opendir, (const char* path), (path))
NANQUEST_COUNTED(DIR*, fdopendir, (int fd), (fd))
NANQUEST_COUNTED(struct dirent*, readdir, (DIR * of), (of))
NANQUEST_COUNTED(struct dirent64*, readdir64, (DIR * of), (of))
// Older compilers' version of stat, as in the C++ library inside libtorch.
NANQUEST_COUNTED(int, __xstat, (int version, const char* path, struct stat* into), (version, path, into))
NANQUEST_COUNTED(int, __lxstat, (int version, const char* path, struct stat* into), (version, path, into))

__attribute__((visibility("default"))) ssize_t read(int fd, void* into, size_t bytes) {
  static const auto next = real(static_cast<ssize_t (*)(int, void*, size_t)>(nullptr), "read");
  ++calls.reads;
  return next(fd, into, bytes);
}
__attribute__((visibility("default"))) ssize_t pread(int fd, void* into, size_t bytes, off_t from) {
  static const auto next = real(static_cast<ssize_t (*)(int, void*, size_t, off_t)>(nullptr), "pread");
  ++calls.reads;
  return next(fd, into, bytes, from);
}
__attribute__((visibility("default"))) ssize_t pread64(int fd, void* into, size_t bytes, off_t from) {
  static const auto next = real(static_cast<ssize_t (*)(int, void*, size_t, off_t)>(nullptr), "pread64");
  ++calls.reads;
  return next(fd, into, bytes, from);
}
__attribute__((visibility("default"))) ssize_t write(int fd, const void* data, size_t bytes) {
  static const auto next = real(static_cast<ssize_t (*)(int, const void*, size_t)>(nullptr), "write");
  return nanquest::testing::wrote(next(fd, data, bytes));
}
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void* data, size_t bytes, off_t to) {
  static const auto next = real(static_cast<ssize_t (*)(int, const void*, size_t, off_t)>(nullptr), "pwrite");
  return nanquest::testing::wrote(next(fd, data, bytes, to));
}
__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void* data, size_t bytes, off_t to) {
  static const auto next =
      real(static_cast<ssize_t (*)(int, const void*, size_t, off_t)>(nullptr), "pwrite64");
  return nanquest::testing::wrote(next(fd, data, bytes, to));
}
}
