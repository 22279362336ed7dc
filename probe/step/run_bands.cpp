#include "probe/step/run_bands.h"

#include <algorithm>

namespace nanquest {

BandNews RunBands::judge(std::uint64_t trained, const StepFigures& seen) {
  const auto found = std::find_if(bands_.begin(), bands_.end(),
                                  [&](const Entry& entry) { return entry.trained == trained; });
  if (found != bands_.end()) {
    bands_.splice(bands_.begin(), bands_, found);
  } else {
    bands_.push_front({trained, {}});
    if (bands_.size() > kMost) bands_.pop_back();
  }
  return bands_.front().band.judge(seen);
}

}  // namespace nanquest
