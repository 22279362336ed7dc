#include "probe/step/forecast.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "probe/numerics/format.h"

namespace nanquest {
namespace {

constexpr std::size_t kNearest = 12;
constexpr std::size_t kMostPlaces = 1 << 14;
constexpr std::int64_t kEvery = 8;     // steps between looks at places that are far from their limit
constexpr double kClose = 5;           // bits: below this, every step
constexpr double kAgain = 1;           // bits beyond near_bits: a reported place has recovered
constexpr double kStill = 1.0 / 1024;  // bits: what moves less is constant
constexpr double kFar = 64;            // bits: with more, no look between watched steps is needed

std::string number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string steps_text(double steps) {
  return std::isfinite(steps) ? number("%.0f", std::max(1.0, std::round(steps))) : "never";
}

}  // namespace

std::string Foreseen::text() const {
  const std::string format(info(*format_of(place.type)).name);
  const std::string around = std::isfinite(reach.latest)
                                 ? " (" + steps_text(reach.earliest) + " to " + steps_text(reach.latest) + ")"
                                 : " (" + steps_text(reach.earliest) + " or more)";
  const bool one = std::round(reach.steps) <= 1;
  return place.text() + " reaches the end of " + format + " in about " + steps_text(reach.steps) +
         (one ? " step" : " steps") + around + ": largest |x| " + number("%.4g", amax) + ", " +
         number("%.1f", bits) + " bits left, " + number("%.2g", -slope) + " fewer each step";
}

bool Forecast::Track::moves() const {
  double least = looks.front().second, most = least;
  for (const auto& [step, bits] : looks) {
    least = std::min(least, bits);
    most = std::max(most, bits);
  }
  return most - least > kStill;
}

std::optional<Foreseen> Forecast::of(const record::SeenRange& range, Track& track, std::int64_t step) const {
  const double bits = track.looks.back().second;
  std::vector<double> x, y;
  const std::size_t first = track.looks.size() - std::min(track.looks.size(), rule_.window);
  for (std::size_t i = first; i < track.looks.size(); ++i) {
    x.push_back(track.looks[i].first);
    y.push_back(track.looks[i].second);
  }
  const auto trend = x.size() < rule_.least ? std::nullopt : trend_of(x, y);
  const auto reach = trend ? reaches_zero(*trend) : std::nullopt;
  const bool soon = reach && bits <= rule_.near_bits && reach->steps <= rule_.horizon &&
                    -trend->slope > rule_.sure * trend->error;
  track.in_a_row = soon ? track.in_a_row + 1 : 0;
  if (track.in_a_row < rule_.in_a_row) return std::nullopt;
  return Foreseen{range.place, step, range.amax, bits, trend->slope, *reach};
}

std::optional<Foreseen> Forecast::take(std::int64_t step, const std::vector<record::SeenRange>& seen,
                                       bool whole,
                                       const std::function<bool(const record::RangePlace&)>& harmless) {
  if (step == last_) return std::nullopt;  // another update of the same step
  if (step < last_) tracks_.clear();       // the program went back to an earlier step
  last_ = step;
  std::optional<Foreseen> first;
  bool still = false;
  for (const record::SeenRange& range : seen) {
    const auto format = format_of(range.place.type);
    if (!format || range.amax == 0 || range.non_finite > 0)
      continue;  // infinite already: nothing to
                 // forecast
    if (tracks_.size() >= kMostPlaces && !tracks_.count(range.place)) continue;
    Track& track = tracks_[range.place];
    const double bits = headroom_bits(*format, range.amax);
    track.looks.emplace_back(static_cast<double>(step), bits);
    if (track.looks.size() > rule_.window) track.looks.pop_front();
    const auto found = of(range, track, step);
    if (bits > rule_.near_bits + kAgain) track.told = false;
    if (found && !track.told && !track.harmless) {
      track.harmless = harmless && harmless(range.place);
      track.told = !track.harmless;
      if (track.told && (!first || found->reach.steps < first->reach.steps)) first = found;
    }
    still = still || (track.told && bits <= rule_.near_bits);
  }
  if (whole) choose_nearest();
  // What has come near since then is looked at more often from now on.
  for (const record::RangePlace& place : nearest_)
    least_bits_ = std::min(least_bits_, tracks_[place].looks.back().second);
  // Others that follow the first one are not news.
  if (telling_ && still) first.reset();
  telling_ = still;
  return first;
}

bool Forecast::due(std::int64_t step) const {
  return !nearest_.empty() && (least_bits_ < kClose || step % kEvery == 0);
}

void Forecast::choose_nearest() {
  std::vector<std::pair<double, const record::RangePlace*>> near;
  for (const auto& [place, track] : tracks_) {
    const double bits = track.looks.back().second;
    if (bits > kFar || track.harmless || (track.looks.size() > 2 && !track.moves())) continue;
    near.emplace_back(bits, &place);
  }
  const std::size_t count = std::min(kNearest, near.size());
  std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(count), near.end());
  nearest_.clear();
  for (std::size_t i = 0; i < count; ++i) nearest_.push_back(*near[i].second);
  least_bits_ = count ? near[0].first : 1e9;
}

}  // namespace nanquest
