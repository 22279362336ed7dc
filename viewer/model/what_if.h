/// What if a tensor's values were of another format, at another loss scale?
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "probe/numerics/fit.h"

namespace nanquest::viewer {

struct WhatIf {
  Format format = Format::fp16;
  int scale = 0;  ///< the values are multiplied by this power of two first
  bool operator==(const WhatIf&) const = default;
};

/// "fp16", "bf16:4096", "fp8_e4m3:2^-3". `usage` for another format, or for a scale that is no power of two
/// within 2^-kMostFitScale and 2^kMostFitScale.
Result<WhatIf> what_if_from(const std::string& text);
/// The same as a text that what_if_from takes.
std::string what_if_word(const WhatIf& what);
/// The same format at another scale, or the next format at the same one; both within their limits.
WhatIf scaled(const WhatIf& what, int by);
WhatIf next_format(const WhatIf& what);

/// "2^12 (4,096)", "2^-3", "1".
std::string scale_text(int scale);
/// "fp16 at 2^12 (4,096): 3 of 4,096 values overflow, 12 become zero, 40 subnormal". `non_finite`: how many
/// values are not counted because they are not finite already.
std::string what_if_text(const FitCounts& counts, const WhatIf& what, std::uint64_t non_finite);
/// Scales at which no value overflows and none becomes zero: "2^-3 to 2^13", "up to 2^13",
/// "any", "none".
std::string harmless_text(const FitCounts& counts, Format format);

}  // namespace nanquest::viewer
