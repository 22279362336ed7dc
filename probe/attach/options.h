/// AttachOptions from the JSON that the launcher and `nanquest.attach()` pass.
#pragma once

#include <string>

#include "probe/attach/session.h"
#include "probe/base/result.h"

namespace nanquest::attach {

/// Reads {"run_dir": "…", "level": "guard|trace|watch", "watch_every": 50, "watch_first": 3, "watch_after":
/// 10, "keep_steps": 2, "keep_percent": 1, "record_steps": [0, 5], "skip_bad_updates": false, "on_forecast": "say", "rank": 0,
/// "world_size": 1, "max_incidents": 16, "config":
/// {"key": "value"}}. Unknown keys are ignored; a value of the wrong kind is a `usage` error that names it.
Result<AttachOptions> parse_options(const std::string& json);

}  // namespace nanquest::attach
