/// Changes to a snapshot after its run wrote it, made for sharing: what was redacted, what was left out, and
/// a person's correction. Stored among the settings of the file under keys that begin with "shared.", so that
/// older programs can open the file and their `info` lists the keys.
///
///     for (const auto& [what, text] : sharing_lines(sharing_of(doc))) say(what + ": " + text);
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

struct Sharing {
  std::vector<std::string> redacted;  ///< "weights (scrambled)"; one line each
  std::vector<std::string>
      left_out;         ///< "history", "90 of 120 operations"; removed as unnecessary, not as private
  std::string verdict;  ///< replay's verdict on the original file, in one line; "" if not known
  std::string wrong;    ///< the true cause according to a person who says that the verdict is wrong; "" if
                        ///< there is none
};

/// The sharing information of a doc; empty for a file as its run wrote it.
Sharing sharing_of(const SnapshotDoc& doc);

/// Writes it into the doc's settings, replacing older entries.
void set_sharing(SnapshotDoc& doc, const Sharing& sharing);

/// The same as text for people: pairs of a title ("redacted" and others) and a line; empty if there is
/// nothing.
std::vector<std::pair<std::string, std::string>> sharing_lines(const Sharing& sharing);

/// True for a setting that is not the run's.
bool is_sharing_key(const std::string& key);

}  // namespace nanquest
