#include "replay/history/aftermath.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "probe/snapshot/series.h"

namespace nanquest {
namespace {

constexpr std::size_t kEarlier = 32, kLeastEarlier = 16;  // steps that show what is usual
constexpr std::size_t kLater = 64;  // as many as RunBand waits before it says that a loss has diverged
constexpr std::size_t kLast = 16;   // of them, that show where it ended
/// Above the largest usual loss by this many times the distance from the median to it.
constexpr double kFar = 2;
/// Shares of steps. In 50 made runs whose rate was raised (tests/spikebench) the loss left for good where
/// 0.89 of all were far above, or more; where it did not, it was 0.89 at most, and 0.69 of the last.
constexpr double kNearlyAll = 0.875, kMost = 0.75, kSome = 0.25;

}  // namespace

Aftermath aftermath_of(const std::vector<SeriesTable>& tables, std::int64_t since) {
  const std::map<std::int64_t, double> losses = losses_of(tables);
  std::vector<double> before, after;
  for (auto at = losses.lower_bound(since); at != losses.begin() && before.size() < kEarlier;)
    if (--at; std::isfinite(at->second)) before.push_back(at->second);
  for (auto at = losses.upper_bound(since); at != losses.end() && after.size() < kLater; ++at)
    after.push_back(at->second);
  if (before.size() < kLeastEarlier || after.size() < kLater) return Aftermath::open;
  std::sort(before.begin(), before.end());
  const double largest = before.back(), middle = before[before.size() / 2];
  const double far = largest + kFar * (largest - middle);
  /// Shares of the steps from `first` on that are far above the usual, or usual. NaN is far.
  const auto share = [&after](std::size_t first, const auto& is_so) {
    const auto begin = after.begin() + static_cast<std::ptrdiff_t>(first);
    return static_cast<double>(std::count_if(begin, after.end(), is_so)) /
           static_cast<double>(after.size() - first);
  };
  const auto is_far = [far](double loss) { return !(loss <= far); };
  const auto is_usual = [largest](double loss) { return loss <= largest; };
  const double all = share(0, is_far), end = share(kLater - kLast, is_far);
  if (all >= kNearlyAll && end >= kNearlyAll) return Aftermath::left;
  const bool usual_again = share(kLater - kLast, is_usual) >= kSome && end <= kSome;
  return usual_again && all <= kMost ? Aftermath::came_back : Aftermath::open;
}

}  // namespace nanquest
