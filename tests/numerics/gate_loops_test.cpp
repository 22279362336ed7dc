#include "probe/numerics/gate_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "probe/numerics/implementation.h"
#include "tests/numerics/naive_scan.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

using testing::kMixes;
using testing::Mix;
using testing::raw_element;

constexpr DType kLoops[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16};

/// An element after a gradient scaler: the product in the format (16-bit ones in fp32), then rounded.
double scaled(DType type, double x, double factor) {
  if (type == DType::float64) return x * factor;
  const float product = static_cast<float>(x) * static_cast<float>(factor);
  return decode(*format_of(type), encode(*format_of(type), static_cast<double>(product)));
}

LoopStats naive(const std::vector<double>& values) {
  LoopStats want;
  for (const double x : values) {
    want.non_finite += !std::isfinite(x);
    want.sum_squares += x * x;
    if (!std::isnan(x)) want.amax = std::max(want.amax, std::fabs(x));
  }
  return want;
}

void expect_same(const LoopStats& got, const LoopStats& want) {
  EXPECT_EQ(got.non_finite, want.non_finite);
  EXPECT_EQ(got.amax, want.amax);
  if (std::isfinite(want.sum_squares))
    EXPECT_NEAR(got.sum_squares, want.sum_squares, 1e-12 * want.sum_squares);
  else
    EXPECT_EQ(std::isnan(got.sum_squares), std::isnan(want.sum_squares));
}

void check(DType type, const std::vector<unsigned char>& data, std::size_t n, double factor) {
  const Format format = *format_of(type);
  std::vector<double> before, after;
  for (std::size_t i = 0; i < n; ++i) {
    before.push_back(decode(format, raw_element(type, data.data(), i)));
    after.push_back(scaled(type, before.back(), factor));
  }
  auto copy = data;
  expect_same(measure(type, copy.data(), n), naive(before));
  EXPECT_EQ(copy, data);
  expect_same(scale_and_measure(type, copy.data(), n, factor), naive(after));
  for (std::size_t i = 0; i < n; ++i) {
    const double stored = decode(format, raw_element(type, copy.data(), i));
    if (std::isnan(after[i]) ? !std::isnan(stored) : stored != after[i]) {
      ADD_FAILURE() << "element " << i << ": " << before[i] << " became " << stored << ", not " << after[i];
      return;
    }
  }
}

TEST(GateLoops, AgreeWithTheObviousLoop) {
  std::mt19937_64 rng(1);
  for (const DType type : kLoops)
    for (const Mix mix : kMixes)
      for (const std::size_t n : {0u, 1u, 7u, 8u, 33u, 255u, 2048u, 2049u, 20001u})
        for (const double factor : {1.0 / 65536, 0.3, 3.0}) {
          SCOPED_TRACE(std::string(dtype_name(type)) + " n " + std::to_string(n) + " mix " +
                       std::to_string(static_cast<int>(mix)) + " factor " + std::to_string(factor));
          check(type, testing::random_elements(type, n, mix, rng), n, factor);
          if (::testing::Test::HasFailure()) return;
        }
}

TEST(GateLoops, EveryPatternOf16BitsIsRoundedAsAScalerDoes) {
  for (const DType type : {DType::float16, DType::bfloat16})
    for (const double factor : {1.0, 0x1p-11, 0.1, 1.7, 257.0}) {
      std::vector<unsigned char> all(2 * 65536);
      for (std::uint32_t bits = 0; bits < 65536; ++bits) std::memcpy(all.data() + 2 * bits, &bits, 2);
      SCOPED_TRACE(std::string(dtype_name(type)) + " factor " + std::to_string(factor));
      check(type, all, 65536, factor);
    }
}

TEST(Implementation, TheVariablePicksALowerSet) {
  const auto all = detail::implementations();
  ASSERT_GE(all.size(), 1u);
  EXPECT_STREQ(all[0]->name, "base");
  for (const detail::Implementation* one : all) EXPECT_EQ(&detail::implementation_named(one->name), one);
  EXPECT_EQ(&detail::implementation_named(nullptr), all.back());
  EXPECT_EQ(&detail::implementation_named("mmx"), all.back());
  // ctest runs this program once per instruction set.
  EXPECT_EQ(&detail::implementation(), &detail::implementation_named(std::getenv("NANQUEST_SIMD")));
}

}  // namespace
}  // namespace nanquest
