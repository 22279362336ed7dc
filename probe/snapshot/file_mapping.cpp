#include "probe/snapshot/file_mapping.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "probe/numerics/hash.h"

namespace nanquest {
namespace {

constexpr std::size_t kPiece = std::size_t{1}
                               << 20;  ///< read and compared at a time; whole blocks of the hash

}  // namespace

FileMappings FileMappings::now() {
  FileMappings found;
  std::set<std::string> programs;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char rights[5] = {};
    int name = 0;
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &begin,
                    &end, rights, &offset, &major, &minor, &inode, &name) < 7 ||
        name == 0 || rights[3] != 'p' || inode == 0)
      continue;
    std::string file = line.substr(static_cast<std::size_t>(name));
    if (!file.starts_with('/')) continue;
    if (rights[2] == 'x') programs.insert(file);
    found.mappings_[begin] = {end, offset, (std::uint64_t{major} << 32) | minor, inode, std::move(file)};
  }
  std::erase_if(found.mappings_, [&](const auto& each) { return programs.count(each.second.file) > 0; });
  return found;
}

std::optional<FilePlace> FileMappings::find(const void* address, std::uint64_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto mapping = mappings_.upper_bound(at);
  if (bytes == 0 || mapping == mappings_.begin()) return std::nullopt;
  --mapping;
  const auto& [first, part] = *mapping;
  if (at >= part.end) return std::nullopt;
  const std::uint64_t offset = part.offset + (at - first);
  // A mapping whose parts have different rights is listed in several pieces.
  std::uint64_t end = part.end;
  for (auto next = std::next(mapping); end - at < bytes && next != mappings_.end(); ++next) {
    if (next->first != end || next->second.inode != part.inode || next->second.device != part.device ||
        next->second.offset != part.offset + (end - first))
      return std::nullopt;
    end = next->second.end;
  }
  if (end - at < bytes) return std::nullopt;
  // A removed file is listed as "… (deleted)". A replaced file is recognised by its bytes.
  struct stat about {};
  if (::stat(part.file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (offset > size || bytes > size - offset) return std::nullopt;
  return FilePlace{part.file, size, offset};
}

std::optional<std::uint64_t> hash_if_same(const FilePlace& place, const void* memory, std::uint64_t bytes) {
  const Descriptor file(::open(place.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, kPiece));
  HashState hash;
  const auto* at = static_cast<const std::byte*>(memory);
  for (std::uint64_t done = 0;;) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - done, kPiece));
    if (!read_at(file.get(), piece.data(), size, place.offset + done) ||
        std::memcmp(piece.data(), at + done, size) != 0)
      return std::nullopt;
    done += size;
    if (done == bytes) return hash.finish(piece.data(), size);
    hash.add_blocks(piece.data(), size / kHashBlock);
  }
}

}  // namespace nanquest
