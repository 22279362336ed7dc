#include "probe/snapshot/disk.h"

#include <hdf5.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "probe/snapshot/descriptor.h"

namespace nanquest::h5 {

/// libhdf5's view of an open file; `base` must come first.
struct DiskFile {
  struct Kept {
    haddr_t address;
    std::vector<char> bytes;
  };

  H5FD_t base{};
  Disk* disk = nullptr;
  haddr_t allocated = 0;   ///< end of the addresses in use
  haddr_t end = 0;         ///< end of what was written, or would have been without the failure
  std::vector<Kept> kept;  ///< metadata written after the failure, in order

  static DiskFile& of(H5FD_t* file) { return *reinterpret_cast<DiskFile*>(file); }
  static const DiskFile& of(const H5FD_t* file) { return *reinterpret_cast<const DiskFile*>(file); }
  void fail() const {
    if (disk->error_ == 0) disk->error_ = errno != 0 ? errno : EIO;
  }

  static H5FD_t* open(const char* name, unsigned flags, hid_t access, haddr_t);
  static herr_t close(H5FD_t* file);
  static herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* out);
  static herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t address, std::size_t bytes,
                      const void* data);
  static herr_t truncate(H5FD_t* file, hid_t, hbool_t);
};

namespace {

constexpr haddr_t kMostAddress = (haddr_t{1} << 62) - 1;

herr_t features(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t) {
  return DiskFile::of(file).allocated;
}

herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  DiskFile::of(file).allocated = address;
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return DiskFile::of(file).end;
}

/// The file's temporary name is known to no other process, so no lock is needed. But libhdf5 marks only files
/// that it could lock as being written, and readers of a growing file check that mark.
herr_t lock(H5FD_t*, hbool_t) {
  return 0;
}
herr_t unlock(H5FD_t*) {
  return 0;
}

H5FD_class_t make_driver() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 2)
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(600);  // numbers from 512 on are free to use
#endif
  driver.name = "nanquest_disk";
  driver.maxaddr = kMostAddress;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(Disk*);
  driver.open = DiskFile::open;
  driver.close = DiskFile::close;
  driver.query = features;
  driver.get_eoa = allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = end_of_file;
  driver.read = DiskFile::read;
  driver.write = DiskFile::write;
  driver.truncate = DiskFile::truncate;
  driver.lock = lock;
  driver.unlock = unlock;
  constexpr H5FD_mem_t together[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(together), std::end(together), driver.fl_map);
  return driver;
}

}  // namespace

H5FD_t* DiskFile::open(const char* name, unsigned flags, hid_t access, haddr_t) try {
  Disk* disk = nullptr;
  const void* info = H5Pget_driver_info(access);
  if (info == nullptr) return nullptr;
  std::memcpy(&disk, info, sizeof disk);
  auto file = std::make_unique<DiskFile>();
  file->disk = disk;
  const int how = O_RDWR | O_CREAT | O_CLOEXEC | ((flags & H5F_ACC_TRUNC) != 0 ? O_TRUNC : O_EXCL);
  disk->fd_ = ::open(name, how, 0666);
  if (disk->fd_ < 0) {
    file->fail();
    return nullptr;
  }
  return &file.release()->base;
} catch (...) {
  return nullptr;  // no exception may cross libhdf5
}

herr_t DiskFile::close(H5FD_t* f) {
  DiskFile& file = of(f);
  if (::close(std::exchange(file.disk->fd_, -1)) != 0) file.fail();
  delete &file;
  return 0;
}

herr_t DiskFile::read(H5FD_t* f, H5FD_mem_t, hid_t, haddr_t address, std::size_t bytes, void* out) {
  const DiskFile& file = of(f);
  char* const to = static_cast<char*>(out);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n = ::pread(file.disk->fd_, to + done, bytes - done, static_cast<off_t>(address + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file.fail();
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  std::memset(to + done, 0,
              bytes - done);  // beyond the end of the file there are zeros, as in a file with holes
  for (const Kept& k : file.kept) {
    const haddr_t first = std::max(address, k.address);
    const haddr_t last = std::min<haddr_t>(address + bytes, k.address + k.bytes.size());
    if (first < last) std::memcpy(to + (first - address), k.bytes.data() + (first - k.address), last - first);
  }
  return 0;
}

herr_t DiskFile::write(H5FD_t* f, H5FD_mem_t type, hid_t, haddr_t address, std::size_t bytes,
                       const void* data) try {
  DiskFile& file = of(f);
  file.end = std::max<haddr_t>(file.end, address + bytes);
  if (file.disk->ok() && !write_at(file.disk->fd_, data, bytes, address)) file.fail();
  if (file.disk->ok() || type == H5FD_MEM_DRAW) return 0;
  const char* from = static_cast<const char*>(data);
  file.kept.push_back({address, {from, from + bytes}});
  return 0;
} catch (...) {
  return 0;  // out of memory: the file is then not closed properly, but it is discarded anyway
}

herr_t DiskFile::truncate(H5FD_t* f, hid_t, hbool_t) {
  DiskFile& file = of(f);
  if (file.disk->ok() && file.allocated != file.end &&
      (!may_grow_to(file.allocated) || ::ftruncate(file.disk->fd_, static_cast<off_t>(file.allocated)) != 0))
    file.fail();
  file.end = file.allocated;
  return 0;
}

Id Disk::create(const std::string& path, hid_t creation, hid_t access) {
  static const H5FD_class_t driver = make_driver();
  // Registered for each file, because the host process may have closed and reopened the library.
  driver_ = Id(H5FDregister(&driver), H5FDunregister);
  Disk* self = this;
  if (!driver_ || H5Pset_driver(access, driver_.get(), &self) < 0) return {};
  return Id(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), H5Fclose);
}

Error Disk::failure(const std::string& path, std::string_view doing, ErrorCode otherwise) const {
  if (ok()) return h5::failure(path, doing, otherwise);
  errno = error_;
  return system_error(path, doing);
}

Status Disk::reserve(hid_t file, const std::string& path, std::uint64_t bytes) {
  constexpr std::uint64_t step = 1 << 20;
  haddr_t end = 0;
  if (fd_ < 0 || H5Fget_eoa(file, &end) < 0 || end + bytes <= reserved_) return {};
  const std::uint64_t wanted = end + bytes + step;
  const int done =
      may_grow_to(end + bytes) ? ::fallocate(fd_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(wanted)) : -1;
  if (done != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
    return system_error(path, "writing");
  reserved_ = wanted;
  return {};
}

}  // namespace nanquest::h5
