#include "probe/trace/extent.h"

#include <algorithm>
#include <array>
#include <vector>

namespace nanquest {
namespace {

constexpr std::int64_t kFarthest = std::int64_t{1} << 48;
constexpr std::int64_t kNoPeriod = std::int64_t{1} << 56;  // beyond every byte

/// A row as bytes that repeat: in each of the periods [first, end), the bytes [from, to) from its start.
struct Folded {
  std::int64_t from = 0, to = 0;    ///< within a period
  std::int64_t first = 0, end = 0;  ///< periods
  bool filled = false;              ///< these are all its bytes, without gaps
};

/// True if steps of these (stride, size), the smallest stride first, leave no gap between blocks of `block`.
bool leaves_no_gap(std::vector<std::array<std::int64_t, 2>>& steps, std::int64_t block) {
  std::sort(steps.begin(), steps.end());
  for (const auto& [stride, size] : steps) {
    if (stride > block) return false;
    block += stride * (size - 1);
  }
  return true;
}

/// The row folded at `period` bytes; nothing if it doesn't repeat so.
std::optional<Folded> fold(const TensorRow& row, std::int64_t period) {
  const auto item = static_cast<std::int64_t>(dtype_size(row.dtype));
  std::vector<std::array<std::int64_t, 2>> inner, outer;
  const std::int64_t begin = row.storage_offset * item;
  Folded f{begin % period, begin % period + item, begin / period, begin / period + 1, false};
  for (std::size_t d = 0; d < row.sizes.size(); ++d) {
    const std::int64_t stride = row.strides[d] * item, size = row.sizes[d];
    if (size == 1 || stride == 0) continue;
    if (stride < 0) return std::nullopt;
    if (stride < period) {
      inner.push_back({stride, size});
      f.to += stride * (size - 1);
    } else if (stride % period == 0) {
      outer.push_back({stride / period, size});
      f.end += stride / period * (size - 1);
    } else {
      return std::nullopt;
    }
  }
  if (f.to > period) return std::nullopt;
  f.filled = leaves_no_gap(inner, item) && leaves_no_gap(outer, 1);
  return f;
}

bool is_empty(const TensorRow& row) {
  return std::find(row.sizes.begin(), row.sizes.end(), 0) != row.sizes.end();
}

/// Calls `f` with both rows folded in every way in which both repeat, until it returns true; true if it did.
template <class F>
bool any_fold(const TensorRow& a, const TensorRow& b, F&& f) {
  const auto folds = [&](std::int64_t period) {
    const auto x = fold(a, period), y = fold(b, period);
    return x && y && f(*x, *y);
  };
  if (folds(kNoPeriod)) return true;
  for (const TensorRow* row : {&a, &b})
    for (std::size_t d = 0; d < row->strides.size(); ++d) {
      const auto item = static_cast<std::int64_t>(dtype_size(row->dtype));
      if (row->sizes[d] > 1 && row->strides[d] > 1 && folds(row->strides[d] * item)) return true;
    }
  return false;
}

}  // namespace

std::optional<ElementSpan> span_of(const TensorRow& row) {
  if (row.sizes.size() != row.strides.size()) return std::nullopt;
  std::int64_t low = row.storage_offset, high = row.storage_offset;
  for (std::size_t d = 0; d < row.sizes.size(); ++d) {
    const std::int64_t size = row.sizes[d], stride = row.strides[d];
    std::int64_t reach = 0;
    if (size < 0 || __builtin_mul_overflow(std::max<std::int64_t>(size, 1) - 1, stride, &reach))
      return std::nullopt;
    if (reach > kFarthest || reach < -kFarthest) return std::nullopt;
    (reach < 0 ? low : high) += reach;
    if (high > kFarthest || low < 0) return std::nullopt;
  }
  if (low < 0 || high > kFarthest) return std::nullopt;
  return is_empty(row) ? ElementSpan{row.storage_offset, row.storage_offset} : ElementSpan{low, high + 1};
}

bool may_overlap(const TensorRow& a, const TensorRow& b) {
  if (is_empty(a) || is_empty(b)) return false;
  if (!span_of(a) || !span_of(b)) return true;
  return !any_fold(a, b, [](const Folded& x, const Folded& y) {
    return x.to <= y.from || y.to <= x.from || x.end <= y.first || y.end <= x.first;
  });
}

bool covers(const TensorRow& outer, const TensorRow& inner) {
  if (is_empty(inner)) return true;
  if (!span_of(outer) || !span_of(inner)) return false;
  if (outer.dtype == inner.dtype && outer.storage_offset == inner.storage_offset &&
      outer.sizes == inner.sizes && outer.strides == inner.strides)
    return true;
  return !is_empty(outer) && any_fold(outer, inner, [](const Folded& x, const Folded& y) {
    return x.filled && x.from <= y.from && y.to <= x.to && x.first <= y.first && y.end <= x.end;
  });
}

}  // namespace nanquest
