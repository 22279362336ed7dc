/// SnapshotReader: opens a snapshot that may be truncated, hostile or from another version.
///
/// Nothing in the file is trusted: links, storage, filters, sizes and indices are checked (every index column
/// of the returned doc is in range). A reader is used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"
#include "probe/snapshot/reference.h"
#include "probe/snapshot/tape.h"

namespace nanquest {

/// A tensor read from a file: contiguous, owned.
struct TensorData {
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

/// Shape and type of a stored tensor, without its bytes.
struct TensorInfo {
  std::string path;
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  bool elsewhere = false;  ///< the bytes are in another file (reference.h)
};

struct ReaderLimits {
  std::uint64_t max_tensor_bytes = 64ull << 30;  ///< refuse larger tensors
  std::uint64_t max_rows = 50'000'000;           ///< of any table
};

class SnapshotReader {
 public:
  /// Opens and checks; reads all tables, no tensors. `bad_file` says what is wrong and what to do.
  static Result<SnapshotReader> open(const std::string& path, ReaderLimits limits = {});
  SnapshotReader(SnapshotReader&&) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) noexcept;
  ~SnapshotReader();

  const std::string& path() const;
  const SnapshotDoc& doc() const;
  /// Whether the file holds the steps before the incident.
  bool has_tape() const;
  /// The tables of these steps; they are read only by this call. `bad_file` if there are none or they are
  /// invalid.
  Result<TapeDoc> read_tape() const;
  int format_major() const;
  int format_minor() const;

  /// Tensors whose bytes are in other files, sorted by path. They are among `tensors` and are read like all
  /// others.
  std::vector<FileReference> references() const;
  /// The path at which the other file is found, with the size that it had; else the error that `read_tensor`
  /// would give.
  Result<std::string> where(const FileReference& reference) const;

  /// True if the file holds a tensor at `path`, or a reference to one.
  bool has_tensor(const std::string& path) const;
  /// Every stored tensor, sorted by path.
  Result<std::vector<TensorInfo>> tensors() const;
  /// Reads one tensor and checks its checksum. If its bytes are in another file that is missing or has
  /// changed, `bad_file` names that file.
  Result<TensorData> read_tensor(const std::string& path) const;
  /// Reads elements [first, first + count) of the flattened tensor (for viewers); no checksum.
  Result<TensorData> read_range(const std::string& path, std::uint64_t first, std::uint64_t count) const;
  /// For a caller that read all ranges of a tensor: `bad_file` unless its bytes have this `hash_bytes`.
  Status check(const std::string& path, std::uint64_t hash) const;

 private:
  struct Impl;
  explicit SnapshotReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nanquest
