#include "viewer/model/layer_range.h"

#include <algorithm>

namespace nanquest::viewer {

void LayerRange::fit(std::size_t layers, std::uint64_t asked) {
  const auto count = static_cast<double>(layers);
  if (count == layers_ && asked == asked_) return;
  layers_ = count;
  asked_ = asked;
  from_ = 0;
  to_ = count;
}

void LayerRange::resize(std::size_t layers) {
  const bool all = is_all();
  layers_ = static_cast<double>(layers);
  if (all)
    show(0, layers_);
  else
    show(from_, to_);
}

void LayerRange::show(double from, double to) {
  const double span = std::clamp(to - from, std::min(4.0, layers_), layers_);
  const double middle = (from + to) / 2;
  from_ = std::clamp(middle - span / 2, 0.0, layers_ - span);
  to_ = from_ + span;
}

void LayerRange::keep_in_sight(std::ptrdiff_t row, std::ptrdiff_t layer) {
  if (layer == seen_) return;
  seen_ = layer;
  if (row < 0) return;
  const auto at = static_cast<double>(row);
  const double span = to_ - from_;
  if (at < from_) show(at, at + span);
  if (at + 1 > to_) show(at + 1 - span, at + 1);
}

}  // namespace nanquest::viewer
