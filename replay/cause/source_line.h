/// source_line: one line of a Python program with a change written into it.
#pragma once

#include <optional>
#include <string>

#include "replay/counterfactual/source_edit.h"

namespace nanquest {

/// `line` with `edit` made in it. Nothing if the line does not show the operation, or shows more than one
/// that it could be; a call that goes on in the next line counts as not shown.
std::optional<std::string> edited_line(const std::string& line, const SourceEdit& edit);

}  // namespace nanquest
