#include "viewer/model/pyramid.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nanquest::viewer {
namespace {
constexpr std::size_t kBase = 64;
constexpr std::size_t kFan = 4;
}  // namespace

void Extremes::add(double value) {
  if (std::isfinite(value)) {
    min = std::min(min, value);
    max = std::max(max, value);
  } else if (std::isnan(value)) {
    ++nan;
  } else {
    ++(value > 0 ? pos_inf : neg_inf);
  }
}

void Extremes::add(const Extremes& other) {
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  nan += other.nan;
  pos_inf += other.pos_inf;
  neg_inf += other.neg_inf;
}

Pyramid::Pyramid(std::vector<double> values) : values_(std::move(values)) {
  std::vector<Extremes> level((values_.size() + kBase - 1) / kBase);
  for (std::size_t i = 0; i < values_.size(); ++i) level[i / kBase].add(values_[i]);
  while (!level.empty()) {
    std::vector<Extremes> next((level.size() + kFan - 1) / kFan);
    for (std::size_t i = 0; i < level.size(); ++i) next[i / kFan].add(level[i]);
    const bool top = level.size() == 1;
    levels_.push_back(std::move(level));
    if (top) break;
    level = std::move(next);
  }
}

Extremes Pyramid::query(std::size_t first, std::size_t last) const {
  Extremes out;
  last = std::min(last, values_.size());
  while (first < last && first % kBase != 0) out.add(values_[first++]);
  while (first < last && last % kBase != 0) out.add(values_[--last]);
  if (first >= last) return out;
  std::size_t a = first / kBase, b = last / kBase;
  for (const std::vector<Extremes>& level : levels_) {
    while (a < b && a % kFan != 0) out.add(level[a++]);
    while (a < b && b % kFan != 0) out.add(level[--b]);
    if (a >= b) return out;
    a /= kFan;
    b /= kFan;
  }
  return out;
}

}  // namespace nanquest::viewer
