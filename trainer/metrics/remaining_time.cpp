#include "trainer/metrics/remaining_time.h"

#include <cmath>
#include <cstdio>

namespace nanquest::trainer {

void RemainingTime::add(double seconds) {
  done_.push_back(seconds);
  if (done_.size() > kSteps + 1) done_.pop_front();
}

std::optional<double> RemainingTime::left(std::int64_t steps) const {
  if (done_.size() < 2) return std::nullopt;
  return (done_.back() - done_.front()) / static_cast<double>(done_.size() - 1) * static_cast<double>(steps);
}

std::string duration_text(double seconds) {
  constexpr long long kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  const long long all = std::llround(seconds);
  const long long days = all / kDay, hours = all % kDay / kHour, minutes = all % kHour / kMinute,
                  rest = all % kMinute;
  char text[64];
  if (days > 0)
    std::snprintf(text, sizeof text, "%lldd %02lld:%02lld:%02lld", days, hours, minutes, rest);
  else if (hours > 0)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, rest);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, rest);
  return text;
}

}  // namespace nanquest::trainer
