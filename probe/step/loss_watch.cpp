#include "probe/step/loss_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nanquest {
namespace {

/// Upper median of the first `count` values, which are reordered.
double median(std::array<double, LossWatch::kWindow>& values, std::size_t count) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count / 2);
  std::nth_element(values.begin(), middle, values.begin() + static_cast<std::ptrdiff_t>(count));
  return *middle;
}

}  // namespace

bool LossWatch::spikes(double loss) {
  if (!std::isfinite(loss)) return false;
  const std::size_t known = std::min(taken_, kWindow);
  bool up = false;
  if (known >= kLeast) {
    std::array<double, kWindow> scratch = losses_;
    const double usual = median(scratch, known);
    // Most steps end here, without the second median.
    if (loss - usual > 0.5 * std::abs(usual)) {
      for (std::size_t i = 0; i < known; ++i) scratch[i] = std::abs(losses_[i] - usual);
      up = loss - usual > 8 * 1.4826 * median(scratch, known);
    }
  }
  losses_[taken_++ % kWindow] = loss;
  return !std::exchange(up_, up) && up;
}

}  // namespace nanquest
