#include "probe/step/watch_spacing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace nanquest {
namespace {

constexpr std::array kEvery{WatchSpacing::kLeast, 100, 200, 500, 1000, 2000, WatchSpacing::kMost};
constexpr std::size_t kLast = 31;
constexpr double kClearly = 0.8;  // more often only if the share pays for clearly more

}  // namespace

void WatchSpacing::took(double seconds, bool watched) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  if (watched) {
    // The first one also pays for memory and caches, and a pause of the machine is no cost of ours.
    watched_ = watched_ < 0 ? seconds : std::min(seconds, 0.8 * watched_ + 0.2 * seconds);
    return;
  }
  if (last_.size() < kLast) return last_.push_back(seconds);
  last_[oldest_] = seconds;
  oldest_ = (oldest_ + 1) % kLast;
}

double WatchSpacing::usual() const {
  std::vector<double> sorted = last_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

int WatchSpacing::wanted() const {
  if (watched_ < 0 || last_.empty() || percent_ <= 0) return kLeast;
  const double median = usual(), steps = std::max(0.0, watched_ - median) / (median * percent_ / 100);
  for (const int every : kEvery)
    if (steps <= (every < next_.every ? kClearly * every : every)) return every;
  return kMost;
}

double WatchSpacing::share(std::int64_t step) const {
  const int every = at(step).every;
  if (watched_ < 0 || last_.empty() || every <= 0) return std::numeric_limits<double>::quiet_NaN();
  const double median = usual(), more = std::max(0.0, watched_ - median);
  return more / (more + median * every);
}

void WatchSpacing::from(std::int64_t now, std::int64_t first, int every) {
  now_ = at(now);
  next_ = {first, every};
}

bool WatchSpacing::due(std::int64_t step) const {
  const Turn& turn = at(step);
  return percent_ > 0 && turn.every > 0 && step >= turn.first && step % turn.every == 0;
}

}  // namespace nanquest
