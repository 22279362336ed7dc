#include "viewer/model/step_range.h"

#include <algorithm>

namespace nanquest::viewer {

void StepRange::fit(const History& history) {
  if (!history.empty()) fit(history.steps().front(), history.steps().back());
}

void StepRange::fit(double low, double high) {
  const bool others = low != data_first_ || high != data_last_;
  const bool all = shows_all();
  data_first_ = low;
  data_last_ = high;
  known_ = true;
  if (answered_ == asked_ && !(others && all)) return;
  answered_ = asked_;
  const double margin = std::max(0.5, (high - low) * 0.01);
  first = low - margin;
  last = high + margin;
}

void StepRange::show(double from, double to) {
  first = from;
  last = to;
  known_ = false;
  answered_ = asked_;
}

std::optional<std::pair<double, double>> StepRange::chosen() const {
  if (answered_ != asked_ || shows_all()) return std::nullopt;
  return std::pair(first, last);
}

std::pair<std::size_t, std::size_t> StepRange::rows(const History& history) const {
  const auto& steps = history.steps();
  const auto from = std::lower_bound(steps.begin(), steps.end(), first - 1);
  const auto to = std::upper_bound(from, steps.end(), last + 1);
  return {static_cast<std::size_t>(from - steps.begin()), static_cast<std::size_t>(to - steps.begin())};
}

}  // namespace nanquest::viewer
