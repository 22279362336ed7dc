/// Names of the functions of a program that exports none, from the symbol table in its file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nanquest {

/// The functions of one ELF file by address. Immutable once made; any thread.
class SymbolTable {
 public:
  /// The table of a loaded file, read once and kept. Empty if the file is stripped, can't be read, or is no
  /// ELF file of this machine's word size. Thread-safe; never throws.
  static const SymbolTable& of(const std::string& path);

  /// Reads `path` as of() does, without keeping the result.
  static SymbolTable read(const std::string& path);

  /// The mangled name of the function at `offset`, in bytes from where the file was loaded; nullptr if there
  /// is none. Valid as long as this table.
  const char* at(std::uintptr_t offset) const;

 private:
  struct Function {
    std::uintptr_t begin = 0, size = 0;
    std::size_t name = 0;  ///< start of its name in names_
  };
  std::vector<Function> functions_;  ///< by `begin`
  std::vector<char> names_;
};

}  // namespace nanquest
