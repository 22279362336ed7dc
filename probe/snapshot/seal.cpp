#include "probe/snapshot/seal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "probe/numerics/scan.h"
#include "probe/snapshot/descriptor.h"

namespace nanquest {
namespace {

constexpr std::string_view kMagic = "nanquest.snapshot ";
constexpr std::string_view kHdf5Magic = "\211HDF\r\n\032\n";
constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kNumbersAt = 64;

/// The numbers of the user block, at byte 64; before them is a line of text for people.
struct Numbers {
  std::uint64_t file_bytes = 0;   ///< of the whole file, the list included
  std::uint64_t list_offset = 0;  ///< where the list of extents starts (the end of HDF5's part)
  std::uint64_t extent_count = 0;
  std::uint64_t contents_hash =
      0;                       ///< of the list and of all bytes from 512 to the list, without the extents
  std::uint64_t own_hash = 0;  ///< of the user block with this field 0
};

Error damaged(const std::string& path, const std::string& what) {
  return {ErrorCode::bad_file, path + ": " + what, "copy the file again from where it was written"};
}

/// Hash of the list, then of everything between the extents, in pieces of at most 1 MiB.
bool hash_contents(int fd, const std::vector<Extent>& extents, std::uint64_t end, std::uint64_t& out) {
  std::vector<std::uint64_t> hashes{hash_bytes(extents.data(), extents.size() * sizeof(Extent))};
  std::vector<char> buffer(kChunk);
  std::uint64_t at = kSealBytes;
  for (std::size_t i = 0; i <= extents.size(); ++i) {
    const std::uint64_t stop = i < extents.size() ? extents[i].offset : end;
    while (at < stop) {
      const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, stop - at));
      if (!read_at(fd, buffer.data(), n, at)) return false;
      hashes.push_back(hash_bytes(buffer.data(), n));
      at += n;
    }
    if (i < extents.size()) at = extents[i].offset + extents[i].bytes;
  }
  out = hash_bytes(hashes.data(), hashes.size() * sizeof(std::uint64_t));
  return true;
}

/// The user block with its own hash filled in.
std::vector<char> make_block(int major, int minor, Numbers numbers) {
  std::vector<char> block(kSealBytes, '\0');
  const std::string line = std::string(kMagic) + std::to_string(major) + "." + std::to_string(minor) +
                           "\nAn HDF5 file: h5dump, h5py\n";
  std::memcpy(block.data(), line.data(), std::min(line.size(), kNumbersAt));
  numbers.own_hash = 0;
  std::memcpy(block.data() + kNumbersAt, &numbers, sizeof numbers);
  numbers.own_hash = hash_bytes(block.data(), block.size());
  std::memcpy(block.data() + kNumbersAt, &numbers, sizeof numbers);
  return block;
}

bool parse_version(std::string_view text, SealInfo& out) {
  const auto major = std::from_chars(text.data(), text.data() + text.size(), out.major);
  if (major.ec != std::errc() || major.ptr == text.data() + text.size() || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, text.data() + text.size(), out.minor);
  return minor.ec == std::errc() && out.major >= 0 && out.minor >= 0;
}

/// The version in the magic line, or an error that says what the file is.
Result<SealInfo> read_magic(const std::string& path, const std::vector<char>& block, int newest_major) {
  const std::string_view text(block.data(), block.size());
  if (text.substr(0, kHdf5Magic.size()) == kHdf5Magic)
    return Error{ErrorCode::bad_file, path + ": an HDF5 file, but not a nanquest snapshot",
                 "snapshots are the incidents/step-*.h5 files of a run directory"};
  SealInfo info;
  if (text.substr(0, kMagic.size()) != kMagic || !parse_version(text.substr(kMagic.size(), 16), info))
    return Error{ErrorCode::bad_file, path + ": not a nanquest snapshot",
                 "snapshots are the incidents/step-*.h5 files of a run directory"};
  if (info.major > newest_major)
    return Error{ErrorCode::bad_file,
                 path + ": written in snapshot format " + std::to_string(info.major) + "." +
                     std::to_string(info.minor) + ", this program reads formats up to " +
                     std::to_string(newest_major) + ".x",
                 "use a newer nanquest"};
  return info;
}

/// True if the extents are in order, do not overlap, and are inside [512, end).
bool well_placed(const std::vector<Extent>& extents, std::uint64_t end) {
  std::uint64_t at = kSealBytes;
  for (const Extent& e : extents) {
    if (e.offset < at || e.offset > end || e.bytes > end - e.offset) return false;
    at = e.offset + e.bytes;
  }
  return true;
}

}  // namespace

Status seal_file(const std::string& path, int major, int minor, std::vector<Extent> tensors) {
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return system_error(path, "sealing");
  return seal(file.get(), path, major, minor, std::move(tensors));
}

Status seal(int fd, const std::string& path, int major, int minor, std::vector<Extent> tensors) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return system_error(path, "sealing");
  std::sort(tensors.begin(), tensors.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  Numbers numbers;
  numbers.list_offset = static_cast<std::uint64_t>(st.st_size);
  numbers.extent_count = tensors.size();
  const std::size_t list_bytes = tensors.size() * sizeof(Extent);
  numbers.file_bytes = numbers.list_offset + list_bytes;
  if (!well_placed(tensors, numbers.list_offset))
    return Error{ErrorCode::internal, path + ": tensors overlap in the file", ""};
  if (!hash_contents(fd, tensors, numbers.list_offset, numbers.contents_hash))
    return system_error(path, "reading back");
  const std::vector<char> block = make_block(major, minor, numbers);
  if (!write_at(fd, tensors.data(), list_bytes, numbers.list_offset) ||
      !write_at(fd, block.data(), block.size(), 0) ||
      ::ftruncate(fd, static_cast<off_t>(numbers.file_bytes)) != 0 ||  // releases the reserved space
      ::fsync(fd) != 0)
    return system_error(path, "sealing");
  return {};
}

Result<SealInfo> check_seal(const std::string& path, int newest_major) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat st {};
  if (!file || ::fstat(file.get(), &st) != 0)
    return Error{ErrorCode::bad_file, path + ": " + std::strerror(errno), "check the path"};
  if (!S_ISREG(st.st_mode))
    return Error{ErrorCode::bad_file, path + ": not a file",
                 "give a snapshot; nanquest explain DIRECTORY explains the newest of a run"};
  const auto file_bytes = static_cast<std::uint64_t>(st.st_size);
  std::vector<char> block(kSealBytes);
  if (file_bytes < kSealBytes || !read_at(file.get(), block.data(), block.size(), 0)) {
    if (file_bytes == 0) return damaged(path, "the file is empty");
    return damaged(path,
                   "not a nanquest snapshot, or cut off after " + std::to_string(file_bytes) + " bytes");
  }
  Result<SealInfo> info = read_magic(path, block, newest_major);
  if (!info) return info;
  Numbers numbers;
  std::memcpy(&numbers, block.data() + kNumbersAt, sizeof numbers);
  const std::uint64_t own_hash = std::exchange(numbers.own_hash, 0);
  std::memcpy(block.data() + kNumbersAt, &numbers, sizeof numbers);
  if (hash_bytes(block.data(), block.size()) != own_hash)
    return damaged(path, "the first 512 bytes are damaged");
  info->file_bytes = numbers.file_bytes;
  if (numbers.file_bytes != file_bytes)
    return damaged(path, "has " + std::to_string(file_bytes) + " bytes instead of " +
                             std::to_string(numbers.file_bytes) +
                             (file_bytes < numbers.file_bytes ? ": it is cut off" : ": something was added"));
  if (numbers.list_offset < kSealBytes || numbers.list_offset > file_bytes ||
      (file_bytes - numbers.list_offset) / sizeof(Extent) != numbers.extent_count ||
      (file_bytes - numbers.list_offset) % sizeof(Extent) != 0)
    return damaged(path, "its seal is malformed");
  std::vector<Extent> extents(numbers.extent_count);
  if (!read_at(file.get(), extents.data(), extents.size() * sizeof(Extent), numbers.list_offset))
    return system_error(path, "reading");
  if (!well_placed(extents, numbers.list_offset)) return damaged(path, "its seal is malformed");
  std::uint64_t hash = 0;
  if (!hash_contents(file.get(), extents, numbers.list_offset, hash)) return system_error(path, "reading");
  if (hash != numbers.contents_hash)
    return damaged(path, "damaged: tables or metadata were changed after it was written");
  return info;
}

}  // namespace nanquest
