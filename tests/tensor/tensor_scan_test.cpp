#include "probe/tensor/copy_memory.h"
#include "probe/tensor/tensor_scan.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace nanquest {
namespace {

TEST(TensorScan, EveryTypeGoesThereAndBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    const at::ScalarType scalar = scalar_type_of(type);
    EXPECT_EQ(dtype_of(scalar), type) << dtype_name(type);
    EXPECT_EQ(c10::elementSize(scalar), dtype_size(type)) << dtype_name(type);
  }
  EXPECT_FALSE(dtype_of(at::kQInt8).has_value());
}

TEST(TensorScan, StatisticsAgreeWithAtenForViewsOfEveryKind) {
  at::manual_seed(1);
  const at::Tensor base = at::randn({6, 5, 4});
  for (const at::Tensor& t :
       {base, base.transpose(0, 2), base.select(1, 2), base.slice(0, 1, 6, 2), base[0].expand({3, 5, 4}),
        base.to(at::kHalf).permute({2, 0, 1}), base.to(at::kBFloat16), base.to(at::kDouble)}) {
    const auto stats = stats_of(t, true);
    ASSERT_TRUE(stats);
    const at::Tensor wide = t.to(at::kDouble);
    EXPECT_EQ(stats->count, static_cast<std::uint64_t>(t.numel()));
    EXPECT_EQ(stats->amax, wide.abs().max().item<double>());
    EXPECT_NEAR(stats->sum_squares, wide.pow(2).sum().item<double>(), 1e-9 * static_cast<double>(t.numel()));
    const auto copy = stats_of(t.contiguous().clone(), true);
    EXPECT_EQ(stats->hash, copy->hash);
  }
}

TEST(TensorScan, CountsAndPlacesNonFiniteValues) {
  at::Tensor t = at::zeros({4, 4});
  t[1][2].fill_(std::numeric_limits<float>::infinity());
  t[3][0].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto stats = stats_of(t.t(), false);
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->pos_inf, 1u);
  EXPECT_EQ(stats->nan, 1u);
  EXPECT_EQ(stats->first_bad, 3);  // transposed: [0][3]
}

TEST(TensorScan, WhatIsNotPlainMemoryIsRefused) {
  EXPECT_FALSE(is_plain(at::Tensor{}));
  EXPECT_FALSE(is_plain(at::empty({2}, at::TensorOptions().device(at::kMeta))));
  EXPECT_FALSE(is_plain(at::eye(3).to_sparse()));
  EXPECT_FALSE(stats_of(at::eye(3).to_sparse(), true).has_value());
  EXPECT_TRUE(is_plain(at::empty({0})));
  EXPECT_EQ(stats_of(at::empty({0}), true)->count, 0u);
}

TEST(TensorScan, CopyStorageTakesAllOfItAndIsIndependent) {
  at::Tensor t = at::arange(10, at::kFloat);
  const at::Tensor copy = copy_storage(t.slice(0, 3, 5));
  t.zero_();
  EXPECT_TRUE(at::equal(copy, at::arange(10, at::kFloat)));
}

TEST(TensorScan, MemoryOfLargeCopiesIsKeptUntilItIsReleased) {
  release_spare_copies();
  const at::Tensor model = at::randn({3, 1 << 20});  // 12 MiB
  const void* place = nullptr;
  {
    const at::Tensor copy = copy_storage(model);
    place = copy.const_data_ptr();
    EXPECT_TRUE(at::equal(copy.view({3, 1 << 20}), model));
    EXPECT_EQ(spare_copy_bytes(), 0u);
  }
  EXPECT_EQ(spare_copy_bytes(), std::size_t{12} << 20);
  const at::Tensor other = at::randn({3 << 20});
  const at::Tensor again = copy_storage(other), second = copy_storage(model);
  EXPECT_EQ(again.const_data_ptr(), place);
  EXPECT_NE(second.const_data_ptr(), place);
  EXPECT_TRUE(at::equal(again, other));
  EXPECT_TRUE(at::equal(second.view({3, 1 << 20}), model));
  EXPECT_EQ(spare_copy_bytes(), 0u);
  { const at::Tensor third = copy_storage(model); }
  EXPECT_GT(spare_copy_bytes(), 0u);
  release_spare_copies();
  EXPECT_EQ(spare_copy_bytes(), 0u);
  EXPECT_TRUE(at::equal(again, other)) << "what is in use is not given back";
}

}  // namespace
}  // namespace nanquest
