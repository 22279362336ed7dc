/// state_since: what the environment of a file says of how long the program's state has been there.
///
///     model_since.Critic.  "18 loaded but time.freq"    the model whose names begin with "Critic." was first
///                                                       called in step 18; load_state_dict gave it all but …
///     weight_since.head.weight  "40"                    a weight that a model got later
///     bad_from_beginning   "buffer mean;parameter w"    bad before the first update
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "probe/snapshot/model.h"

namespace nanquest {

struct StateSince {
  std::int64_t step = 0;        ///< in which its model was first called to train
  bool loaded = false;          ///< load_state_dict gave it a value before that
  bool from_beginning = false;  ///< it was bad before the first update of the program
};

/// What is known of a weight or buffer with this name; nothing if the file has no note of its model. `kind`:
/// "parameter" or "buffer".
std::optional<StateSince> state_since(const SnapshotDoc& doc, std::string_view kind, const std::string& name);

/// Whether an entry of the environment is one of these.
bool tells_of_state(std::string_view key);

/// Notes what was bad before the first update, by names as "parameter w".
void note_beginning(SnapshotDoc& doc, const std::set<std::string>& bad);

}  // namespace nanquest
