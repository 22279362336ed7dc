/// Small files that are complete or absent: written under a temporary name beside the final one, fsynced,
/// renamed, directory fsynced. For manifests, verdicts and checkpoints.
///
///     Status s = write_file_atomically("run/manifest.json", text);
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "probe/base/result.h"

namespace nanquest {

/// `now`: on the disk when the call returns. `soon`: when the system writes it; a crash of the machine (not
/// of the program) may bring the old file back. For files that are written often and can be made again.
enum class Durable { now, soon };

/// Writes `bytes` to the file `path` and replaces its contents; parent directories are created. On failure
/// (`io`, with path and way out) the old file, if any, is unchanged. Thread-safe for different paths.
Status write_file_atomically(const std::string& path, std::string_view bytes, Durable durable = Durable::now);

/// The same for contents that arrive in pieces. A writer that is destroyed before `commit` leaves no file.
class AtomicFile {
 public:
  /// Starts `path`; parent directories are created.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) noexcept;
  ~AtomicFile();

  /// Appends `bytes` bytes; they are copied before the call returns.
  Status append(const void* data, std::size_t bytes);
  /// Makes the file appear under its name. The writer can't be used afterwards.
  Status commit(Durable durable = Durable::now);

 private:
  struct Impl;
  explicit AtomicFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The whole of a file of at most `max_bytes`; `bad_file` if it is missing, larger or unreadable.
Result<std::string> read_whole_file(const std::string& path, std::size_t max_bytes = std::size_t{256} << 20);

}  // namespace nanquest
