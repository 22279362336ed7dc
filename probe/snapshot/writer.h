/// SnapshotWriter: writes one snapshot file so that it is complete or absent.
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

/// A contiguous tensor in memory that somebody else owns.
struct TensorView {
  DType dtype = DType::uint8;
  std::span<const std::int64_t> shape;
  const void* data = nullptr;
};

class SnapshotWriter {
 public:
  /// Starts `path` (parent directories are made). Fails with `io` when the place can't be written.
  static Result<SnapshotWriter> create(const std::string& path);
  SnapshotWriter(SnapshotWriter&&) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) noexcept;
  ~SnapshotWriter();

  /// Stores one tensor at `path` ("parameters/fc.weight"), with its checksum. Module dots are kept
  /// in one name; '/' separates groups. Bytes are copied out before the call returns.
  Status write_tensor(const std::string& path, const TensorView& tensor);

  /// Says where the bytes of a tensor lie, in place of `write_tensor`. What the file is called from here on
  /// is found out where `from_here` is empty; nothing is read.
  Status write_reference(FileReference reference);

  /// Stores all tables of the doc, and of the tape if there is one. Call once, before `commit`.
  Status write_doc(const SnapshotDoc& doc, const TapeDoc* tape = nullptr);

  /// Makes the file appear under its name. After it the writer is spent.
  Status commit();

 private:
  struct Impl;
  explicit SnapshotWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nanquest
