#include "viewer/model/pyramid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace nanquest::viewer {
namespace {
constexpr std::size_t kBase = Pyramid::kBlock;
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

/// Eight at a time, and one by one only if one of them is not finite: most stretches are finite, and drawing
/// a run needs a hundred thousand of them per frame.
void Extremes::add(std::span<const double> values) {
  using Pair = double __attribute__((vector_size(16)));
  constexpr std::size_t pairs = 4, at_once = pairs * 2;
  Pair low[pairs], high[pairs], poison[pairs] = {};
  std::ranges::fill(low, Pair{min, min});
  std::ranges::fill(high, Pair{max, max});
  const auto look = [&](const double* from) {
    for (std::size_t p = 0; p < pairs; ++p) {
      Pair value;
      std::memcpy(&value, from + 2 * p, sizeof value);
      low[p] = value < low[p] ? value : low[p];
      high[p] = value > high[p] ? value : high[p];
      poison[p] += value * 0;  // NaN where the value is NaN or infinite
    }
  };
  std::size_t i = 0;
  for (; i + at_once <= values.size(); i += at_once) look(values.data() + i);
  // Some of the last eight are seen twice, which does not change extremes.
  if (i > 0 && i < values.size()) look(values.data() + values.size() - at_once);
  const Pair any = poison[0] + poison[1] + poison[2] + poison[3];
  if (i > 0 && any[0] + any[1] == 0) {
    for (std::size_t p = 0; p < pairs; ++p)
      for (const int half : {0, 1}) {
        min = std::min(min, low[p][half]);
        max = std::max(max, high[p][half]);
      }
    return;
  }
  for (const double value : values) add(value);
}

Pyramid::Pyramid(std::vector<double> values) : values_(std::move(values)) {
  complete_blocks();
}

void Pyramid::append(std::span<const double> more) {
  values_.append(more);
  complete_blocks();
}

/// Of values and of each level: an incomplete block is never asked for.
void Pyramid::complete_blocks() {
  std::vector<Extremes> blocks;
  const auto grow = [&](std::size_t level, std::size_t below, std::size_t fan, const auto& value) {
    const std::size_t complete = below / fan;
    if (level == levels_.size() && complete > 0) levels_.emplace_back();
    blocks.clear();
    for (std::size_t b = level < levels_.size() ? levels_[level].size() : 0; b < complete; ++b) {
      blocks.emplace_back();
      for (std::size_t i = b * fan; i < (b + 1) * fan; ++i) blocks.back().add(value(i));
    }
    if (!blocks.empty()) levels_[level].append(blocks);
    return complete;
  };
  std::size_t below = grow(0, values_.size(), kBase, [&](std::size_t i) { return values_[i]; });
  for (std::size_t level = 1; below > 0; ++level)
    below = grow(level, below, kFan, [&](std::size_t i) { return levels_[level - 1][i]; });
}

Extremes Pyramid::query(std::size_t first, std::size_t last) const {
  Extremes out;
  last = std::min(last, values_.size());
  const auto scan = [&](std::size_t from, std::size_t to) {
    values_.stretches(from, to, [&](std::span<const double> values) { out.add(values); });
  };
  // Values before the first whole block, and those after the last one.
  const std::size_t inner = std::min(last, (first + kBase - 1) / kBase * kBase);
  const std::size_t outer = std::max(inner, last / kBase * kBase);
  scan(first, inner);
  scan(outer, last);
  first = inner;
  last = outer;
  if (first >= last) return out;
  std::size_t a = first / kBase, b = last / kBase;
  for (const Grown<Extremes>& level : levels_) {
    while (a < b && a % kFan != 0) out.add(level[a++]);
    while (a < b && b % kFan != 0) out.add(level[--b]);
    if (a >= b) return out;
    a /= kFan;
    b /= kFan;
  }
  return out;
}

}  // namespace nanquest::viewer
