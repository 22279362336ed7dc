/// Taster: reads a file before this process does, in one of its own, so that a file which brings the reader
/// down is a sentence and not the end of the window. It keeps accidents in, not attackers out.
///
///     taste_with(child_taster("/proc/self/exe", {}));   // once, before any session is opened
///     if (Status well = tasted(path); !well) …          // what Session does with every HDF5 file that it
///     opens
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/reader.h"

namespace nanquest::viewer {

/// What a file is to be read as.
enum class Taste : std::uint8_t { snapshot, series, ranges };
using Taster = std::function<Status(Taste, const std::string& path)>;

/// Has every file tasted from now on; null for none. Not while anybody reads.
void taste_with(Taster taster);
/// What the taster says of a file: ok, or `bad_file`. Ok without one. Any thread.
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
/// Runs a program with no input and no output, no files written and no core left. `bad_file`, with the words
/// of how it ended, if a signal ended it or it took too long; ok for every exit code: what is merely wrong
/// with a file is reported by the next reader. `io` if it can't be started.
Status run_apart(const std::vector<std::string>& command, const ChildLimits& limits);
/// Runs `program --taste KIND --taste-file PATH` for every file, once as long as the file stays as it is.
Taster child_taster(std::string program, ChildLimits limits);
/// What that child does: reads all of the file that a window may come to read, up to a gigabyte of tensors.
void taste(Taste as, const std::string& path);

}  // namespace nanquest::viewer
