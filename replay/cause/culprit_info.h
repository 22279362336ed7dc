/// culprit_info: an op of the trace as a verdict names it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Frames of an op, innermost first. The engine called a backward op: the line to show is that of the op it
/// differentiates.
std::vector<std::string> stack_of(const Case& c, const OpRow& op);

/// Op `index` (may be kNone), with the case's bad values.
CulpritInfo culprit_info(const Case& c, std::int32_t index);

}  // namespace nanquest
