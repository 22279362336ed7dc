/// What was done to a snapshot after its run wrote it, so that it can be given away: what was redacted, what
/// was left out, and what somebody knows better. Kept among the settings of the file under keys that begin
/// with "shared.", so that older programs open such a file, and `info` lists the keys there too.
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
  std::vector<std::string> left_out;  ///< "history", "90 of 120 operations"; not private, only not needed
  std::string verdict;                ///< what replay said of the file before, in one line; "" if not known
  std::string wrong;  ///< what it really was, by who says that the verdict is wrong; "" if nobody does
};

/// What the doc says of it; nothing of a file as its run wrote it.
Sharing sharing_of(const SnapshotDoc& doc);

/// Puts it into the doc's settings, in place of what is there.
void set_sharing(SnapshotDoc& doc, const Sharing& sharing);

/// The same for people: "redacted" and the like, with what is to be said; empty if there is nothing.
std::vector<std::pair<std::string, std::string>> sharing_lines(const Sharing& sharing);

/// True for a setting that is none of the run's.
bool is_sharing_key(const std::string& key);

}  // namespace nanquest
