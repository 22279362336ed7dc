#include "probe/snapshot/reference.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "probe/numerics/scan.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRank = 8;
const char* const kWayOut =
    "put the file back as it was, or name the folder of the model: --model DIR; nanquest-replay embed "
    "makes a copy that needs no other file";

/// Opens a regular file and returns its size; else none, with errno set. Does not wait for a pipe.
Descriptor open_regular(const std::string& path, std::uint64_t& size) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return {};
  if (!S_ISREG(about.st_mode)) {
    errno = ENOENT;
    return {};
  }
  size = static_cast<std::uint64_t>(about.st_size);
  return file;
}

bool holds(const Descriptor& file, const FileReference& reference) {
  std::vector<std::byte> bytes(bytes_of(reference));
  return read_at(file.get(), bytes.data(), bytes.size(), reference.offset) &&
         hash_bytes(bytes.data(), bytes.size()) == reference.checksum;
}

/// Files of that size in the folder, the one of the same name first.
std::vector<std::string> candidates_in(const std::string& folder, const FileReference& reference) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) return {folder};
  const fs::path name = fs::path(reference.file).filename();
  std::vector<std::string> found{(fs::path(folder) / name).string()};
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().filename() != name && fs::is_regular_file(entry.path(), ignored) &&
        fs::file_size(entry.path(), ignored) == reference.file_bytes)
      found.push_back(entry.path().string());
  return found;
}

}  // namespace

std::uint64_t elements_of(const FileReference& reference) {
  std::uint64_t count = 1;
  for (const std::int64_t n : reference.shape) count *= static_cast<std::uint64_t>(n);
  return count;
}

std::uint64_t bytes_of(const FileReference& reference) {
  return elements_of(reference) * dtype_size(reference.dtype);
}

Status check_reference(const FileReference& reference) {
  const auto bad = [&](const char* what) {
    return Error{ErrorCode::bad_file, "the reference of " + reference.path + " " + what, ""};
  };
  const FilePlace& place = reference;
  if (!place.file.starts_with('/') || place.file.find('\0') != std::string::npos ||
      reference.from_here.find('\0') != std::string::npos)
    return bad("names no absolute path");
  if (reference.shape.size() > kMostRank) return bad("has more than 8 dimensions");
  std::uint64_t bytes = dtype_size(reference.dtype);
  for (const std::int64_t n : reference.shape) {
    if (n < 0 || (n > 0 && bytes > INT64_MAX / static_cast<std::uint64_t>(n)))
      return bad("has an impossible shape");
    bytes *= static_cast<std::uint64_t>(n);
  }
  if (place.offset > place.file_bytes || bytes > place.file_bytes - place.offset)
    return bad("reaches past the end of its file");
  return {};
}

Result<const ReferencedFiles::Opened*> ReferencedFiles::open(const FileReference& reference) {
  const FilePlace& place = reference;
  if (const auto known = files_.find(place.file); known != files_.end()) return &known->second;
  const auto keep = [&](const std::string& path, Descriptor file) {
    return &files_.emplace(place.file, Opened{path, std::move(file)}).first->second;
  };
  std::uint64_t size = 0;
  const char* const folder = std::getenv(kModelVariable);
  const bool elsewhere = folder != nullptr && *folder != '\0';
  if (elsewhere)
    // Any file of that size, if its bytes match.
    for (const std::string& path : candidates_in(folder, reference))
      if (Descriptor file = open_regular(path, size);
          file && size == place.file_bytes && holds(file, reference))
        return keep(path, std::move(file));
  const std::string also = elsewhere ? " (nor is it in " + std::string(folder) + ")" : "";
  Descriptor file = open_regular(place.file, size);
  const int why = errno;
  if (file && size == place.file_bytes) return keep(place.file, std::move(file));
  const bool there = static_cast<bool>(file);
  const std::uint64_t size_there = size;
  if (!reference.from_here.empty()) {
    const fs::path path = fs::path(snapshot_).parent_path() / reference.from_here;
    if (Descriptor moved = open_regular(path.string(), size); moved && size == place.file_bytes)
      return keep(path.string(), std::move(moved));
  }
  if (there)
    return Error{ErrorCode::bad_file,
                 place.file + ": has " + std::to_string(size_there) + " bytes, but had " +
                     std::to_string(place.file_bytes) + " when frozen weights of " + snapshot_ +
                     " were read from it" + also,
                 kWayOut};
  return Error{ErrorCode::bad_file,
               place.file + ": can't be opened (" + std::strerror(why) + "), and frozen weights of " +
                   snapshot_ + " are kept in it" + also,
               kWayOut};
}

Result<std::string> ReferencedFiles::where(const FileReference& reference) {
  const auto opened = open(reference);
  if (!opened) return opened.error();
  return (*opened)->path;
}

Status ReferencedFiles::read(const FileReference& reference, std::uint64_t first, std::uint64_t count,
                             std::byte* out) {
  const auto opened = open(reference);
  if (!opened) return opened.error();
  const std::uint64_t element = dtype_size(reference.dtype);
  if (read_at((*opened)->file.get(), out, count * element, reference.offset + first * element)) return {};
  return Error{ErrorCode::bad_file,
               (*opened)->path + ": reading " + reference.path + " of " + snapshot_ +
                   " failed: " + std::strerror(errno),
               kWayOut};
}

Error ReferencedFiles::changed(const FileReference& reference) const {
  const auto opened = files_.find(reference.file);
  const std::uint64_t begin = reference.offset;
  return {ErrorCode::bad_file,
          (opened != files_.end() ? opened->second.path : reference.file) +
              ": has changed since frozen weights of " + snapshot_ + " were read from it (" + reference.path +
              ", bytes " + std::to_string(begin) + " to " + std::to_string(begin + bytes_of(reference)) + ")",
          kWayOut};
}

}  // namespace nanquest
