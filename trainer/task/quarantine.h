/// Samples that are never used again, by their ids.
///
///     Result<Quarantine> quarantine = Quarantine::open("ids.txt");
///     if (quarantine->holds("docs/a.txt@128")) …
///     Status s = quarantine->add({"docs/a.txt@256"}, "step 12: policy skip");   // in the file when it
///     returns
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// The file is text for people too, of the same form as that of attached Python programs: one id a line, what
/// follows a # is a comment. A second word names a data set to those programs; here the id alone counts. In
/// an id stand %20, %23, %25 for a space, #, %, and the like for line breaks.
class Quarantine {
 public:
  /// Reads the file; makes it if it is not there. `bad_file` or `io`, naming the path.
  static Result<Quarantine> open(const std::string& path);
  /// Reads the file, if it is there, without ever writing to it; ids of `but` are passed over.
  static Result<Quarantine> read(const std::string& path, const std::set<std::string>& but = {});

  bool holds(const std::string& id) const { return ids_.contains(id); }
  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  const std::string& path() const { return path_; }
  /// A line about each line of the file that was not understood when it was opened.
  const std::vector<std::string>& remarks() const { return remarks_; }

  /// Takes `ids` in and appends those that are new, below a remark that says why. They hold for this process
  /// even where the file can't be written (`io`).
  Status add(const std::vector<std::string>& ids, const std::string& why);

 private:
  Status take(const std::set<std::string>& but);

  std::string path_;
  bool kept_ = true;  ///< what is added goes into the file
  std::vector<std::string> remarks_;
  std::unordered_set<std::string> ids_;
};

}  // namespace nanquest::trainer
