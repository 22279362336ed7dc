/// repro_refusal: when only the culprit can't show what went wrong. Private to replay/report.
#pragma once

#include <string>

#include "probe/base/result.h"
#include "replay/report/repro_call.h"

namespace nanquest {

/// Success if an op of the step made the bad values; otherwise what held them, and what to do.
Status op_is_to_blame(const Case& c);

/// Success if the culprit, run alone here as `call`, gives a non-finite result, as recorded.
Status op_shows_it(const Case& c, const RecordedCall& call);

/// "3 NaN and 1 Inf": what was recorded of the op's outputs; "no NaN or Inf".
std::string bad_text(const RecordedCall& call);

}  // namespace nanquest
