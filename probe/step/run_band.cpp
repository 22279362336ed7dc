#include "probe/step/run_band.h"

#include <cmath>
#include <utility>

namespace nanquest {
namespace {

constexpr int kFirst = 16;       // steps that show what a figure was like at the start
constexpr double kSmall = 0.15;  // of the size at the start: a spike below it does not matter
constexpr double kWary = 1.5;    // times the edge, while another excursion is not long ago
constexpr int kWarySteps = 4096;
constexpr double kRisen = 1.5;  // times the usual learning rate
constexpr double kWorse =
    1.5;  // times the start, or the largest value so far: a spike in spite of a higher rate
constexpr int kNewLevel = 96;  // steps after which a gradient norm that stays outside is the usual one
constexpr int kAfterDivergence = 512;  // steps after which a loss that has left is judged anew
constexpr double kClimb = 4, kAboveStart = 2, kGrown = 2, kMoves = 0.05;  // see Climb

template <std::size_t N>
double median(std::array<double, N> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// How far a copy is taken to have brought a figure. While few copies are known it may bring a run back
/// towards its start, as a restart of the rate may: the first targets were as far off.
template <class Figure>
double brought(const Figure& figure, double value, const CopyJumps& jumps) {
  const bool few = jumps.explains(CopyJumps::kUnknown, CopyJumps::kUnknown);
  return few && figure.above(value, /*rate_rose=*/true) == 0 ? 0 : figure.farthest;
}

}  // namespace

double RunBand::Figure::above(double value, bool rate_rose) const {
  if (std::abs(value) < kSmall * start) return 0;
  // A restart brings a run back towards its start, never beyond it.
  if (rate_rose && value < kWorse * std::max(start, largest)) return 0;
  return band.above(value);
}

void RunBand::Figure::take(double value) {
  if (!std::isfinite(value)) return;
  band.take(value);
  largest = std::max(largest, std::abs(value));
  if (first < kFirst) {  // the mean of the first steps
    ++first;
    start += (std::abs(value) - start) / first;
  }
}

void RunBand::Figure::came_back() {
  if (std::exchange(out, false)) band.came_back(farthest);
  farthest = 0;
}

void RunBand::Figure::was_its_own() {
  out = false;
  farthest = 0;
}

bool RunBand::rate_rose(double rate) {
  if (!std::isfinite(rate)) return false;
  const std::size_t known = std::min(rates_known_, rates_.size());
  double lowest = rate;
  for (std::size_t i = 0; i < known; ++i) lowest = std::min(lowest, rates_[i]);
  rates_[rates_known_++ % rates_.size()] = rate;
  return rate > kRisen * lowest;
}

bool RunBand::Climb::falls() const {
  std::array<double, kBack / 2> earlier{}, later{};
  for (std::size_t i = 0; i < last.size(); ++i)
    (i < earlier.size() ? earlier : later)[i % earlier.size()] =
        last[(static_cast<std::size_t>(count) + i) % last.size()];
  return median(later) < median(earlier);
}

bool RunBand::Climb::climbs(const StepFigures& seen) {
  if (!std::isfinite(seen.loss)) return false;
  negative = negative || seen.loss < 0;
  if (negative) return false;
  last[static_cast<std::size_t>(count++) % last.size()] = seen.loss;
  if (!std::isfinite(weights)) weights = seen.weights;
  if (count == 1) {
    first = seen.loss;
    low_at = seen.step;
  }
  if (count < kBack) return false;
  const double now = median(last);
  // A rate that is far too high takes the loss away from its first value at once.
  if (count == kBack) first = low = first > 0 ? std::min(first, now) : now;
  if (now < low) {
    low = now;
    weights = seen.weights;
  }
  if (seen.loss <= kAboveStart * low) low_at = seen.step;
  const double least = *std::min_element(last.begin(), last.end());
  if (low <= 0 || now < kClimb * low || now < kAboveStart * first || least < kAboveStart * low) return false;
  if (falls()) return false;  // it has jumped, as where a task becomes harder, and is learned down again
  return seen.weights > kGrown * weights || seen.moved > kMoves;
}

BandNews RunBand::judge(const StepFigures& seen) {
  const bool rose = rate_rose(seen.rate);
  BandNews news;
  const double loss = loss_.above(seen.loss, rose), norm = norm_.above(seen.norm, rose);
  const double edge = excursion_ ? Band::kBack : wary_ > 0 ? kWary : 1;
  if (wary_ > 0) --wary_;
  news.loss = loss > edge;
  news.norm = norm > edge;
  if (left_ && left_above_ > 0) news.loss = seen.loss > left_above_;
  if (excursion_ || news.loss || news.norm) {
    loss_.farthest = std::max(loss_.farthest, loss);
    norm_.farthest = std::max(norm_.farthest, norm);
    loss_.out |= news.loss;
    norm_.out |= news.norm;
  }
  if (loss_.band.known() || norm_.band.known()) jumps_.judged(seen.copies, loss, norm, quiet_);
  const bool climbs = climb_.climbs(seen);
  if (climbs && !left_) {
    if (!excursion_) {
      news = begin(news, seen);
      since_ = climb_.low_at + 1;
    }
    quiet_ = false;
    left_above_ = kAboveStart * climb_.low;
    // Its window has taken the climb in: the edge says nothing.
    usual_loss_.back = usual_loss_.edge = std::max(left_above_, usual_loss_.high);
    news.loss = true;
    return diverged(news);
  }
  if (!news.loss) loss_.take(seen.loss);
  if (!news.norm) norm_.take(seen.norm);
  if (excursion_) return go_on(news, seen);
  return news.loss || news.norm ? begin(news, seen) : news;
}

BandNews RunBand::begin(BandNews news, const StepFigures& seen) {
  excursion_ = true;
  since_ = seen.step;
  steps_ = 1;
  outside_ = outside_in_a_row_ = news.loss;
  inside_in_a_row_ = 0;
  usual_loss_ = loss_.band.range().value_or(Band::Range{});
  usual_norm_ = norm_.band.range().value_or(Band::Range{});
  quiet_ = jumps_.follows() &&
           jumps_.explains(brought(loss_, seen.loss, jumps_), brought(norm_, seen.norm, jumps_));
  if (quiet_) return {};
  news.kind = BandNews::spike;
  news.since = since_;
  news.usual_loss = usual_loss_;
  news.usual_norm = usual_norm_;
  return news;
}

BandNews RunBand::after_copy(BandNews news, const StepFigures& seen) {
  if (!jumps_.explains(brought(loss_, seen.loss, jumps_), brought(norm_, seen.norm, jumps_))) {
    news.loss = loss_.farthest > 1;
    news.norm = norm_.farthest > 1;
    return begin(news, seen);
  }
  const bool is_level = steps_ >= kForGood;  // that the copy brought
  if (inside_in_a_row_ < kBack && !is_level) return {};
  for (Figure* figure : {&loss_, &norm_}) {
    if (is_level && figure->out) figure->band.forget();
    figure->was_its_own();
  }
  excursion_ = quiet_ = false;
  return {};
}

BandNews RunBand::go_on(BandNews news, const StepFigures& seen) {
  const bool out = left_ ? news.loss : news.loss || news.norm;
  news.since = since_;
  news.usual_loss = usual_loss_;
  news.usual_norm = usual_norm_;
  ++steps_;
  outside_ += news.loss;
  outside_in_a_row_ = news.loss ? outside_in_a_row_ + 1 : 0;
  inside_in_a_row_ = out ? 0 : inside_in_a_row_ + 1;
  news.kind = out ? BandNews::goes_on : BandNews::inside;
  if (quiet_) return after_copy(news, seen);
  if (inside_in_a_row_ >= kBack) {
    excursion_ = left_ = false;
    left_above_ = 0;
    wary_ = kWarySteps;
    loss_.came_back();
    norm_.came_back();
  } else if (left_) {
    if (steps_ < kAfterDivergence) return news;
    *this = RunBand();
  } else if (steps_ >= kForGood && 4 * outside_ >= 3 * steps_ && outside_in_a_row_ >= kBack) {
    return diverged(news);
  } else if (steps_ >= kNewLevel && !news.loss) {
    norm_.band.forget();
    norm_.came_back();
    excursion_ = false;
  }
  return news;
}

BandNews RunBand::diverged(BandNews news) {
  left_ = true;
  steps_ = 0;
  news.kind = BandNews::diverged;
  news.since = since_;
  news.usual_loss = usual_loss_;
  news.usual_norm = usual_norm_;
  return news;
}

}  // namespace nanquest
