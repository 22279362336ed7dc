/// Values of a snapshot whose bytes are in another, older file: frozen weights in the safetensors file from
/// which they were mapped.
///
/// Such a file is not trusted: it must have the recorded size, and each tensor's bytes must have the hash
/// that they had when the step read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/snapshot/descriptor.h"

namespace nanquest {

/// The environment variable with a folder (or a file) in which such files are looked for first: the current
/// place of the model. The programs' `--model` sets it.
inline constexpr const char* kModelVariable = "NANQUEST_MODEL";

/// A range of a file.
struct FilePlace {
  std::string file;              ///< absolute path
  std::uint64_t file_bytes = 0;  ///< size of the whole file
  std::uint64_t offset = 0;      ///< of the first byte
};

/// A tensor of a snapshot whose bytes are in another file: contiguous, with the bytes that the snapshot would
/// hold.
struct FileReference : FilePlace {
  std::string path;  ///< path of the tensor in the snapshot
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::string from_here;       ///< path of the file relative to the snapshot's folder, in case both moved
                               ///< together; may be ""
  std::uint64_t checksum = 0;  ///< hash_bytes of its bytes
};

/// Elements and bytes of a reference whose shape was checked.
std::uint64_t elements_of(const FileReference& reference);
std::uint64_t bytes_of(const FileReference& reference);

/// Ok if shape, range and names are possible; else `bad_file` with what is wrong.
Status check_reference(const FileReference& reference);

/// Reads the bytes of references. One thread at a time.
class ReferencedFiles {
 public:
  /// For the snapshot at `path`.
  explicit ReferencedFiles(std::string path) : snapshot_(std::move(path)) {}

  /// Copies elements [first, first + count) to `out`. `bad_file` names the file and the way out if it is
  /// missing or of another size; the bytes are not checked.
  Status read(const FileReference& reference, std::uint64_t first, std::uint64_t count, std::byte* out);
  /// The path at which its file was found, with the recorded size; errors as in `read`.
  Result<std::string> where(const FileReference& reference);
  /// The error for a tensor whose bytes have another hash.
  Error changed(const FileReference& reference) const;

 private:
  struct Opened {
    std::string path;
    Descriptor file;
  };
  Result<const Opened*> open(const FileReference& reference);

  std::string snapshot_;
  std::map<std::string, Opened> files_;  ///< by the path in the snapshot
};

}  // namespace nanquest
