/// A doc in which every field of every table has a distinct value, and tensors of every dtype.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/writer.h"

namespace nanquest::testing {

/// The doc; the same on every call.
SnapshotDoc rich_doc();

/// The tape for it.
TapeDoc rich_tape();

/// One tensor of each dtype, a rank-0 one, an empty one and one of rank 8, with fixed contents.
std::vector<std::pair<std::string, TensorData>> rich_tensors();

/// The tensor that may be in another file.
inline constexpr const char* kRichReference = "parameters/all.float32";

/// Writes everything as one snapshot. With `beside`, kRichReference is in a file of that name in the same
/// folder, which is written too. (The snapshot refers to it by an absolute path that does not exist, and by
/// its relative path.)
Status write_rich(const std::string& path, const std::string& beside = "");

/// Fails the running test for every field in which the two differ (doubles are compared by their bits).
void expect_same_doc(const SnapshotDoc& got, const SnapshotDoc& want);

/// The same for tapes.
void expect_same_tape(const TapeDoc& got, const TapeDoc& want);

/// A temporary directory for one test, removed afterwards.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string string() const { return path_.string(); }
  /// Number of files and folders in it, or directly below one of its folders ("a/b").
  std::size_t entries(const std::string& folder = "") const;

 private:
  std::filesystem::path path_;
};

}  // namespace nanquest::testing
