/// Taster: reads a file first in a child process, so that a file which crashes the reader gives an error and
/// does not end the window. It protects against accidents, not against attackers.
///
///     taste_with(child_taster("/proc/self/exe", {}));   // once, before any session is opened
///     if (Status well = tasted(path); !well) …          // Session does this with every HDF5 file that it
///     opens
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/reader.h"

namespace nanquest::viewer {

/// The kind of file to read it as.
enum class Taste : std::uint8_t { snapshot, series, ranges };
using Taster = std::function<Status(Taste, const std::string& path)>;

/// Checks every file with this taster from now on; null for none. Not while files are being read.
void taste_with(Taster taster);
/// The taster's result for a file: ok, or `bad_file`. Ok without a taster. Any thread.
Status tasted(Taste as, const std::string& path);
/// SnapshotReader::open of a file that was tasted.
Result<SnapshotReader> open_tasted(const std::string& path);

struct ChildLimits {
#ifdef __SANITIZE_ADDRESS__
  static constexpr std::uint64_t kMemory =
      ~std::uint64_t{0};  // the sanitizer reserves terabytes of addresses
#else
  static constexpr std::uint64_t kMemory = std::uint64_t{8} << 30;
#endif
  double seconds = 120;            ///< until it is ended
  std::uint64_t memory = kMemory;  ///< bytes of address space
};
/// Runs a program without input and output, written files or core dump. `bad_file`, with how it ended, if a
/// signal ended it or it took too long; ok for every exit code: ordinary errors of a file are reported by the
/// next reader. `io` if it can't be started.
Status run_apart(const std::vector<std::string>& command, const ChildLimits& limits);
/// Runs `program --taste KIND --taste-file PATH` for every file, once as long as the file does not change.
Taster child_taster(std::string program, ChildLimits limits);
/// What that child process does: reads everything of the file that a window may read, up to a gigabyte of
/// tensors.
void taste(Taste as, const std::string& path);

}  // namespace nanquest::viewer
