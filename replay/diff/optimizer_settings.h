/// optimizer_settings: the setting of an optimizer that a number is, by what the files hold of its settings.
#pragma once

#include <string>

#include "probe/snapshot/model.h"

namespace nanquest::diff {

/// The name of the one setting that is `in_a` in A and `in_b` in B, in the same optimizer and group: "eps".
/// "" if there is none, if settings of different names fit, or if a file holds no settings.
std::string setting_that_differs(const SnapshotDoc& a, const SnapshotDoc& b, const std::string& in_a,
                                 const std::string& in_b);

}  // namespace nanquest::diff
