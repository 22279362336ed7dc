/// FileBudget: how much of the disk the files of a run's steps may take, and which files are removed for a
/// new one.
///
///     FileBudget budget(20 << 30);                      // 0: no bound
///     Result<std::vector<std::string>> go = budget.to_go(bytes);
///     if (!go) …                                        // it does not fit, whatever is removed
///     for (const std::string& path : *go) budget.remove(path);
///     …                                                 // the file is written
///     budget.wrote(path, FileBudget::Kind::wake);
///
/// The first incident and the newest file stay. Of the others, incidents soon after another one and finite
/// ones (`wake`) are removed first, oldest first; then incidents and recordings, oldest first. What replay made of a file
/// (.replay.h5) counts and is removed with it; its verdict stays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest {

class FileBudget {
 public:
  /// `wake`: an incident soon after another one, or a finite one (a spike).
  enum class Kind { incident, wake, recording };

  explicit FileBudget(std::uint64_t most) : most_(most) {}

  bool bounded() const { return most_ > 0; }
  /// Bytes of the files that are there.
  std::uint64_t used() const;
  /// The files to remove so that `bytes` more fit, in this order; `io` if they don't fit even then.
  Result<std::vector<std::string>> to_go(std::uint64_t bytes) const;
  /// The file is complete; it is the newest.
  void wrote(const std::string& path, Kind kind);
  /// Removes the file and what replay made of it. Returns the bytes freed.
  std::uint64_t remove(const std::string& path);
  /// Whether the files together exceed the bound (a new one can be larger than estimated).
  bool over() const { return bounded() && used() > most_; }

 private:
  struct File {
    std::string path;
    Kind kind;
  };
  /// The file's bytes, including what replay made of it.
  static std::uint64_t bytes_of(const std::string& path);

  std::uint64_t most_;
  std::vector<File> files_;  ///< in the order in which they were written
};

}  // namespace nanquest
