#include "probe/record/symbols.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

namespace nanquest {
namespace {

/// A larger file has debug information in its tables; reading its names would take too long.
constexpr std::uint64_t kMaxBytes = std::uint64_t{256} << 20;

template <class T>
std::optional<std::vector<T>> read_at(std::ifstream& file, std::uint64_t offset, std::uint64_t bytes) {
  if (bytes > kMaxBytes) return std::nullopt;
  std::vector<T> items(bytes / sizeof(T));
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(items.data()), static_cast<std::streamsize>(items.size() * sizeof(T)));
  if (!file) return std::nullopt;
  return items;
}

}  // namespace

SymbolTable SymbolTable::read(const std::string& path) {
  SymbolTable table;
  std::ifstream file(path, std::ios::binary);
  const auto header = read_at<ElfW(Ehdr)>(file, 0, sizeof(ElfW(Ehdr)));
  if (!header || std::memcmp(header->front().e_ident, ELFMAG, SELFMAG) != 0 ||
      header->front().e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32) ||
      header->front().e_shentsize != sizeof(ElfW(Shdr)))
    return table;
  const auto sections = read_at<ElfW(Shdr)>(file, header->front().e_shoff,
                                            std::uint64_t{header->front().e_shnum} * sizeof(ElfW(Shdr)));
  if (!sections) return table;
  for (const auto& section : *sections) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections->size()) continue;
    const auto& strings = (*sections)[section.sh_link];
    const auto symbols = read_at<ElfW(Sym)>(file, section.sh_offset, section.sh_size);
    auto names = read_at<char>(file, strings.sh_offset, strings.sh_size);
    if (!symbols || !names || names->empty() || names->back() != '\0') return table;
    // ELF32_ST_TYPE and ELF64_ST_TYPE take the same four bits.
    for (const auto& symbol : *symbols)
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_size > 0 && symbol.st_name < names->size())
        table.functions_.push_back({symbol.st_value, symbol.st_size, symbol.st_name});
    table.names_ = std::move(*names);
    std::sort(table.functions_.begin(), table.functions_.end(),
              [](const Function& a, const Function& b) { return a.begin < b.begin; });
    break;  // a file has at most one
  }
  return table;
}

const SymbolTable& SymbolTable::of(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, SymbolTable> tables;
  static const SymbolTable none;
  try {
    const std::lock_guard lock(mutex);
    const auto [entry, is_new] = tables.try_emplace(path);
    if (is_new) entry->second = read(path);
    return entry->second;
  } catch (...) {
    return none;
  }
}

const char* SymbolTable::at(std::uintptr_t offset) const {
  auto next = std::upper_bound(functions_.begin(), functions_.end(), offset,
                               [](std::uintptr_t at, const Function& f) { return at < f.begin; });
  if (next == functions_.begin()) return nullptr;
  const Function& f = *--next;
  return offset < f.begin + f.size ? names_.data() + f.name : nullptr;
}

}  // namespace nanquest
