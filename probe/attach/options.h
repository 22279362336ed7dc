/// AttachOptions from the JSON that the launcher and `nanquest.attach()` pass.
#pragma once

#include <string>

#include "probe/attach/session.h"
#include "probe/base/result.h"

namespace nanquest::attach {

/// Reads the object made by Settings.to_json of the Python package: the settings that its table
/// (nanquest/base/settings_table.py) marks for the library, and what is known of the process. Defaults and
/// ranges are in that table only. A key that is missing or unknown, or a value of the wrong kind, is a
/// `usage` error that names it.
Result<AttachOptions> parse_options(const std::string& json);

}  // namespace nanquest::attach
