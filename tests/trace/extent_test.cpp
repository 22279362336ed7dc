// Which elements two views share: compared with sets of bytes counted one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "probe/trace/extent.h"

namespace nanquest {
namespace {

TensorRow row(std::int64_t offset, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
              DType dtype = DType::float32) {
  TensorRow r;
  r.slot = 0;
  r.dtype = dtype;
  r.storage_offset = offset;
  r.sizes = std::move(sizes);
  r.strides = std::move(strides);
  return r;
}

std::set<std::int64_t> bytes_of(const TensorRow& r) {
  std::set<std::int64_t> elements{r.storage_offset}, bytes;
  for (std::size_t d = 0; d < r.sizes.size(); ++d) {
    std::set<std::int64_t> more;
    for (std::int64_t i = 0; i < r.sizes[d]; ++i)
      for (const std::int64_t e : elements) more.insert(e + i * r.strides[d]);
    elements = std::move(more);
  }
  const auto item = static_cast<std::int64_t>(dtype_size(r.dtype));
  for (const std::int64_t e : elements)
    for (std::int64_t b = 0; b < item; ++b) bytes.insert(e * item + b);
  return bytes;
}

TEST(Extent, HalvesOfAStorageAreApart) {
  EXPECT_FALSE(may_overlap(row(0, {4}, {1}), row(4, {4}, {1})));
  EXPECT_TRUE(may_overlap(row(0, {5}, {1}), row(4, {4}, {1})));
  EXPECT_TRUE(covers(row(0, {8}, {1}), row(2, {2, 3}, {3, 1})));
  EXPECT_FALSE(covers(row(0, {7}, {1}), row(4, {4}, {1})));
}

TEST(Extent, ColumnsOfOneMatrixAreApart) {
  // [6, 12] in three chunks of columns, as a fused projection is split.
  const TensorRow q = row(0, {6, 4}, {12, 1}), k = row(4, {6, 4}, {12, 1}), v = row(8, {6, 4}, {12, 1});
  EXPECT_FALSE(may_overlap(q, k));
  EXPECT_FALSE(may_overlap(v, k));
  EXPECT_TRUE(may_overlap(q, row(0, {6, 12}, {12, 1})));
  EXPECT_TRUE(covers(row(0, {6, 12}, {12, 1}), k));
  EXPECT_TRUE(covers(q, row(12, {3, 2}, {12, 1}))) << "rows 1 to 3 of its first columns";
  EXPECT_FALSE(covers(q, row(12, {3, 5}, {12, 1})));
  // Heads of q: [2 batches, 2 heads, 3 tokens, 2] over the same memory.
  EXPECT_TRUE(covers(q, row(0, {2, 2, 3, 2}, {36, 2, 12, 1})));
  EXPECT_FALSE(may_overlap(k, row(0, {2, 2, 3, 2}, {36, 2, 12, 1})));
}

TEST(Extent, ViewsAsOtherTypesAreComparedByBytes) {
  const TensorRow complex = row(1, {2}, {1}, DType::complex64);  // bytes 8 to 24
  EXPECT_FALSE(may_overlap(complex, row(0, {2}, {1})));
  EXPECT_TRUE(may_overlap(complex, row(5, {1}, {1})));
  EXPECT_TRUE(covers(complex, row(2, {2, 2}, {2, 1})));
}

TEST(Extent, EmptyAndRepeatedViews) {
  EXPECT_FALSE(may_overlap(row(0, {0, 4}, {4, 1}), row(0, {4}, {1})));
  EXPECT_TRUE(covers(row(8, {1}, {1}), row(0, {0}, {1})));
  EXPECT_TRUE(covers(row(0, {5, 4}, {0, 1}), row(1, {3}, {1}))) << "an expanded row";
}

TEST(Extent, LayoutsThatCantBe) {
  EXPECT_FALSE(span_of(row(0, {2, 2}, {1})));
  EXPECT_FALSE(span_of(row(-1, {2}, {1})));
  EXPECT_FALSE(span_of(row(0, {-2}, {1})));
  EXPECT_FALSE(span_of(row(0, {3, std::int64_t{1} << 62}, {1, 1})));
  EXPECT_FALSE(span_of(row(0, {3}, {-1}))) << "before the storage";
  EXPECT_TRUE(may_overlap(row(0, {2, 2}, {1}), row(90, {1}, {1}))) << "nothing is proven";
  EXPECT_FALSE(covers(row(0, {2, 2}, {1}), row(0, {1}, {1})));
  ASSERT_TRUE(span_of(row(2, {3}, {-1})));
  EXPECT_EQ(span_of(row(2, {3}, {-1}))->begin, 0);
  EXPECT_EQ(span_of(row(2, {3}, {-1}))->end, 3);
}

/// A view as programs make them: a contiguous tensor, narrowed, permuted, stepped, expanded.
TensorRow random_view(std::mt19937& random) {
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random()) % n; };
  static const std::vector<std::vector<std::int64_t>> shapes = {{24}, {4, 6}, {2, 3, 4}, {2, 12}, {6, 2, 2}};
  TensorRow r = row(0, shapes[static_cast<std::size_t>(pick(5))], {});
  r.strides.assign(r.sizes.size(), 1);
  for (std::size_t d = r.sizes.size(); d-- > 1;) r.strides[d - 1] = r.strides[d] * r.sizes[d];
  for (std::int64_t n = pick(4); n > 0; --n) {
    const auto d = static_cast<std::size_t>(pick(static_cast<std::int64_t>(r.sizes.size())));
    if (pick(6) == 0) {
      r.sizes.insert(r.sizes.begin(), 2);
      r.strides.insert(r.strides.begin(), 0);
    } else if (pick(4) == 0 && r.sizes[d] > 1) {
      r.strides[d] *= 2;
      r.sizes[d] = (r.sizes[d] + 1) / 2;
    } else {
      const std::int64_t from = pick(r.sizes[d] + 1);
      r.storage_offset += from * r.strides[d];
      r.sizes[d] = pick(r.sizes[d] - from + 1);
    }
  }
  if (r.sizes.size() > 1 && pick(2)) {
    std::swap(r.sizes.front(), r.sizes.back());
    std::swap(r.strides.front(), r.strides.back());
  }
  return r;
}

TEST(Extent, NeverClaimsWhatCountingRefutes) {
  std::mt19937 random(11);
  int apart = 0, told_apart = 0, inside = 0, told_inside = 0;
  for (int i = 0; i < 20000; ++i) {
    const TensorRow a = random_view(random), b = random_view(random);
    const std::set<std::int64_t> x = bytes_of(a), y = bytes_of(b);
    const bool really_apart =
        std::none_of(x.begin(), x.end(), [&](std::int64_t byte) { return y.count(byte); });
    const bool really_inside = std::includes(x.begin(), x.end(), y.begin(), y.end());
    const bool claims_apart = !may_overlap(a, b), claims_inside = covers(a, b);
    ASSERT_TRUE(really_apart || !claims_apart);
    ASSERT_TRUE(really_inside || !claims_inside);
    if (y.empty() || x.empty()) continue;
    apart += really_apart, told_apart += claims_apart;
    inside += really_inside, told_inside += claims_inside;
  }
  // It can't separate views whose periods do not divide each other.
  EXPECT_GT(told_apart, apart * 85 / 100) << told_apart << " of " << apart;
  EXPECT_GT(told_inside, inside * 85 / 100) << told_inside << " of " << inside;
}

TEST(Overwritten, RowsAreCompleteWhenAllTheirPiecesAre) {
  const TensorRow all = row(0, {8}, {1});
  Overwritten later(all);
  EXPECT_TRUE(later.add(row(4, {4}, {1})));
  EXPECT_FALSE(later.add(row(5, {2}, {1}))) << "all of it was overwritten";
  EXPECT_TRUE(later.add(row(3, {2}, {1})));
  EXPECT_FALSE(later.complete());
  EXPECT_TRUE(later.add(row(0, {3}, {1})));
  EXPECT_TRUE(later.complete());
}

TEST(Overwritten, ColumnsToo) {
  const TensorRow all = row(0, {6, 12}, {12, 1});
  Overwritten later(all);
  EXPECT_TRUE(later.add(row(4, {6, 4}, {12, 1})));
  EXPECT_TRUE(later.add(row(0, {6, 4}, {12, 1})));
  EXPECT_FALSE(later.add(row(2, {6, 4}, {12, 1}))) << "half of it is in either";
  EXPECT_FALSE(later.add(row(12, {2, 4}, {12, 1}))) << "some rows of the first";
  EXPECT_FALSE(later.complete());
  EXPECT_TRUE(later.add(row(8, {6, 4}, {12, 1})));
  EXPECT_TRUE(later.complete());
}

TEST(Overwritten, NeverClaimsWhatCountingRefutes) {
  std::mt19937 random(12);
  int over = 0, told = 0;
  for (int i = 0; i < 4000; ++i) {
    const TensorRow all = random_view(random);
    Overwritten later(all);
    const std::set<std::int64_t> shown = bytes_of(all);
    std::set<std::int64_t> gone;
    for (int k = 0; k < 6; ++k) {
      const TensorRow write = random_view(random);
      std::set<std::int64_t> here;
      for (const std::int64_t byte : bytes_of(write))
        if (shown.count(byte)) here.insert(byte);
      const bool really = std::includes(gone.begin(), gone.end(), here.begin(), here.end());
      const bool claims = !later.add(write);
      ASSERT_TRUE(really || !claims);
      gone.insert(here.begin(), here.end());
      ASSERT_TRUE(!later.complete() || gone.size() == shown.size());
      if (here.empty()) continue;
      over += really, told += claims;
    }
  }
  EXPECT_GT(told, over / 2) << told << " of " << over;
}

}  // namespace
}  // namespace nanquest
