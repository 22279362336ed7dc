#include "probe/trace/extent.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace nanquest {
namespace {

constexpr std::int64_t kFarthest = std::int64_t{1} << 48;
constexpr std::int64_t kNoPeriod = std::int64_t{1} << 56;  // beyond every byte

/// Pairs (stride, size) of the non-trivial dimensions.
using Steps = std::array<std::array<std::int64_t, 2>, 64>;

/// True if the first `count` of these steps leave no gap between blocks of `block`.
bool leaves_no_gap(Steps& steps, std::size_t count, std::int64_t block) {
  std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 0; i < count; ++i) {
    if (steps[i][0] > block) return false;
    block += steps[i][0] * (steps[i][1] - 1);
  }
  return true;
}

/// A row as bytes that repeat: in each of the periods [first, end), the bytes [from, to) after its start.
struct Folded {
  std::int64_t from = 0, to = 0;
  std::int64_t first = 0, end = 0;
};

/// The row folded at `period` bytes; nothing if it does not repeat like that. `filled` (may be null): whether
/// it holds all bytes of its ranges.
std::optional<Folded> fold(const TensorRow& row, std::int64_t period, bool* filled = nullptr) {
  const auto item = static_cast<std::int64_t>(dtype_size(row.dtype));
  const std::int64_t begin = row.storage_offset * item;
  Folded f{begin % period, begin % period + item, begin / period, begin / period + 1};
  Steps inner, outer;
  std::size_t inside = 0, outside = 0;
  if (row.sizes.size() > inner.size()) return std::nullopt;
  for (std::size_t d = 0; d < row.sizes.size(); ++d) {
    const std::int64_t stride = row.strides[d] * item, size = row.sizes[d];
    if (size == 1 || stride == 0) continue;
    if (stride < 0) return std::nullopt;
    if (stride < period) {
      inner[inside++] = {stride, size};
      f.to += stride * (size - 1);
    } else if (stride % period == 0) {
      outer[outside++] = {stride / period, size};
      f.end += stride / period * (size - 1);
    } else {
      return std::nullopt;
    }
  }
  if (f.to > period) return std::nullopt;
  if (filled) *filled = leaves_no_gap(inner, inside, item) && leaves_no_gap(outer, outside, 1);
  return f;
}

bool is_empty(const TensorRow& row) {
  return std::find(row.sizes.begin(), row.sizes.end(), 0) != row.sizes.end();
}

/// Calls `f` with possible periods of the row until it returns true; true if it did.
template <class F>
bool any_period(const TensorRow& row, F&& f) {
  const auto item = static_cast<std::int64_t>(dtype_size(row.dtype));
  for (std::size_t d = 0; d < row.strides.size(); ++d)
    if (row.sizes[d] > 1 && row.strides[d] > 1 && f(row.strides[d] * item)) return true;
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

bool same_view(const TensorRow& a, const TensorRow& b) {
  return a.dtype == b.dtype && a.storage_offset == b.storage_offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

bool may_overlap(const TensorRow& a, const TensorRow& b) {
  if (is_empty(a) || is_empty(b)) return false;
  if (!span_of(a) || !span_of(b)) return true;
  const auto apart = [&](std::int64_t period) {
    const auto x = fold(a, period), y = fold(b, period);
    return x && y && (x->to <= y->from || y->to <= x->from || x->end <= y->first || y->end <= x->first);
  };
  return !apart(kNoPeriod) && !any_period(a, apart) && !any_period(b, apart);
}

bool covers(const TensorRow& outer, const TensorRow& inner) {
  if (is_empty(inner)) return true;
  if (!span_of(outer) || !span_of(inner)) return false;
  if (same_view(outer, inner)) return true;
  if (is_empty(outer)) return false;
  const auto inside = [&](std::int64_t period) {
    bool filled = false;
    const auto x = fold(outer, period, &filled), y = fold(inner, period);
    return x && y && filled && x->from <= y->from && y->to <= x->to && x->first <= y->first &&
           y->end <= x->end;
  };
  return inside(kNoPeriod) || any_period(outer, inside) || any_period(inner, inside);
}

void ByteSet::add(std::int64_t begin, std::int64_t end) {
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  for (; next != ranges_.end() && next->first <= end; next = ranges_.erase(next))
    end = std::max(end, next->second);
  ranges_.emplace(begin, end);
}

bool ByteSet::holds(std::int64_t begin, std::int64_t end) const {
  const auto next = ranges_.upper_bound(begin);
  return begin >= end || (next != ranges_.begin() && std::prev(next)->second >= end);
}

Overwritten::Overwritten(const TensorRow& row) : row_(row), known_(span_of(row) && !is_empty(row)) {}

bool Overwritten::add(const TensorRow& write) {
  if (!known_ || !span_of(write) || is_empty(write)) return true;
  bool filled = false;
  const auto row = fold(row_, kNoPeriod), all = fold(write, kNoPeriod, &filled);
  if (!row || !all) return true;
  if (ranges_.holds(std::max(row->from, all->from), std::min(row->to, all->to))) return false;
  if (filled) {
    ranges_.add(all->from, all->to);
    complete_ = complete_ || ranges_.holds(row->from, row->to);
  }
  if (period_ == 0)
    (void)any_period(write, [&](std::int64_t period) {
      if (fold(row_, period) && fold(write, period)) period_ = period;
      return period_ != 0;
    });
  return period_ == 0 || add_columns(write);
}

bool Overwritten::add_columns(const TensorRow& write) {
  bool filled = false;
  const auto row = fold(row_, period_), columns = fold(write, period_, &filled);
  if (!row || !columns) return true;
  if (columns_.holds(std::max(row->from, columns->from), std::min(row->to, columns->to))) return false;
  if (!filled || columns->first > row->first || columns->end < row->end) return true;
  columns_.add(columns->from, columns->to);
  complete_ = complete_ || columns_.holds(row->from, row->to);
  return true;
}

}  // namespace nanquest
