/// Samples that are never used again, by their ids.
///
///     Result<Quarantine> quarantine = Quarantine::open("ids.txt");
///     if (quarantine->holds("docs/a.txt@128")) …
///     Status s = quarantine->add({"docs/a.txt@256"}, "step 12: policy skip");   // in the file when it
///     returns
#pragma once

#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// The file is text for people too: one id a line, lines that begin with "# " and empty ones are remarks.
class Quarantine {
 public:
  /// Reads the file; makes it if it is not there. `bad_file` or `io`, naming the path.
  static Result<Quarantine> open(const std::string& path);

  bool holds(const std::string& id) const { return ids_.contains(id); }
  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  const std::string& path() const { return path_; }

  /// Takes `ids` in and appends those that are new, below a remark that says why. They hold for this process
  /// even where the file can't be written (`io`). An id with a line break, or one that reads like a remark,
  /// is not for a file: `unsupported`.
  Status add(const std::vector<std::string>& ids, const std::string& why);

 private:
  std::string path_;
  std::unordered_set<std::string> ids_;
};

}  // namespace nanquest::trainer
