/// Samples that are never used again, by their ids.
///
///     Result<Quarantine> quarantine = Quarantine::open("ids.txt");
///     if (quarantine->holds("docs/a.txt@128")) …
///     Status s = quarantine->add({"docs/a.txt@256"}, "step 12: policy skip");   // writes to the file
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "probe/nanquest.h"

namespace nanquest::trainer {

/// The file is readable text, in the form of attached Python programs: one id a line, text after a # is a
/// comment. Those programs use a second word for the data set; here only the id counts. In an id, %20, %23,
/// %25 are a space, #, %, and line breaks are written similarly.
class Quarantine {
 public:
  /// Reads the file; creates it if it does not exist. `bad_file` or `io`, naming the path.
  static Result<Quarantine> open(const std::string& path);
  /// Reads the file, if it exists, without ever writing to it; ids in `but` are skipped.
  static Result<Quarantine> read(const std::string& path, const std::set<std::string>& but = {});

  bool holds(const std::string& id) const { return ids_.contains(id); }
  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  const std::string& path() const { return path_; }
  /// A message about each line of the file that was not understood when it was opened.
  const std::vector<std::string>& remarks() const { return remarks_; }

  /// Adds `ids` and appends the new ones to the file, below a comment with the reason. They hold for this
  /// process even if the file can't be written (`io`).
  Status add(const std::vector<std::string>& ids, const std::string& why);

 private:
  Status take(const std::set<std::string>& but);

  std::string path_;
  bool kept_ = true;  ///< added ids are written to the file
  std::vector<std::string> remarks_;
  std::unordered_set<std::string> ids_;
};

}  // namespace nanquest::trainer
