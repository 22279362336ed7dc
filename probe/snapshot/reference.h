/// Values of a snapshot that are bytes of another file, one that was there before it: frozen weights in the
/// safetensors file that they were mapped from.
///
/// Such a file is never trusted: it has to have the size that it had, and each tensor's bytes have to have
/// the hash that they had when the step read them.
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

/// The environment variable that names a folder (or a file) in which such files are looked for first: where
/// the model lies now. `--model` of the programs sets it.
inline constexpr const char* kModelVariable = "NANQUEST_MODEL";

/// A range of a file.
struct FilePlace {
  std::string file;              ///< absolute path
  std::uint64_t file_bytes = 0;  ///< size of the whole file
  std::uint64_t offset = 0;      ///< of the first byte
};

/// A tensor of a snapshot that lies in another file: contiguous, in the bytes that the snapshot would hold.
struct FileReference : FilePlace {
  std::string path;  ///< of the tensor in the snapshot
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::string from_here;       ///< the file from the snapshot's folder on, for both moved together; may be ""
  std::uint64_t checksum = 0;  ///< hash_bytes of its bytes
};

/// Elements and bytes of a reference whose shape was checked.
std::uint64_t elements_of(const FileReference& reference);
std::uint64_t bytes_of(const FileReference& reference);

/// Ok if shape, range and names are possible; else what is wrong, as `bad_file`.
Status check_reference(const FileReference& reference);

/// Reads what references name. One thread at a time.
class ReferencedFiles {
 public:
  /// Of the snapshot at `path`.
  explicit ReferencedFiles(std::string path) : snapshot_(std::move(path)) {}

  /// Elements [first, first + count) into `out`. `bad_file` names the file and the way out if it is not there
  /// or of another size; their bytes are not looked at.
  Status read(const FileReference& reference, std::uint64_t first, std::uint64_t count, std::byte* out);
  /// The path under which its file was found, of the size that it had; errors as `read`.
  Result<std::string> where(const FileReference& reference);
  /// What to say of a tensor whose bytes have another hash.
  Error changed(const FileReference& reference) const;

 private:
  struct Opened {
    std::string path;
    Descriptor file;
  };
  Result<const Opened*> open(const FileReference& reference);

  std::string snapshot_;
  std::map<std::string, Opened> files_;  ///< by the path that the snapshot has
};

}  // namespace nanquest
