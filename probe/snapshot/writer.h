/// SnapshotWriter: writes one snapshot file that is complete or absent.
///
/// The file is written under a temporary name beside its final one; `commit` closes, fsyncs,
/// renames and fsyncs the directory. Destroying an uncommitted writer removes the temporary file.
/// All calls from one thread.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"
#include "probe/snapshot/reference.h"
#include "probe/snapshot/tape.h"

namespace nanquest {

/// A contiguous tensor in memory, not owned.
struct TensorView {
  DType dtype = DType::uint8;
  std::span<const std::int64_t> shape;
  const void* data = nullptr;
};

class SnapshotWriter {
 public:
  /// Starts `path` (parent directories are created). Error `io` if it can't be written.
  static Result<SnapshotWriter> create(const std::string& path);
  SnapshotWriter(SnapshotWriter&&) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) noexcept;
  ~SnapshotWriter();

  /// Stores one tensor at `path` ("parameters/fc.weight"), with its checksum. Dots of module names stay in
  /// one name; '/' separates groups. The bytes are copied before the call returns.
  Status write_tensor(const std::string& path, const TensorView& tensor);

  /// Records where the bytes of a tensor are, instead of `write_tensor`. If `from_here` is empty, the
  /// relative path of the file is determined; nothing is read.
  Status write_reference(FileReference reference);

  /// Stores all tables of the doc, and of the tape if there is one. Call once, before `commit`.
  Status write_doc(const SnapshotDoc& doc, const TapeDoc* tape = nullptr);

  /// Makes the file appear under its name. The writer can't be used afterwards.
  Status commit();

 private:
  struct Impl;
  explicit SnapshotWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nanquest
