/// ignored_targets: the labels of which none counts, where a loss has nothing to average over.
#pragma once

#include <optional>
#include <string>

#include "replay/case/case.h"

namespace nanquest {

/// Labels that a loss was to leave out, and that are all there are.
struct IgnoredTargets {
  std::string text;    ///< "All 16 labels are ignored (-100)", a sentence without its full stop
  std::string advice;  ///< what to do about such a batch
};

/// Of a class loss by its `target` and `ignore_index`; of any other op by the mask that its argument
/// `counted` is counted or selected by: back to where the program compared whole numbers with a constant, as
/// `labels != -100` does. Nothing if that is not how it is, or if some of them count.
std::optional<IgnoredTargets> ignored_targets(const Case& c, std::int32_t op, std::string_view counted);

}  // namespace nanquest
