#include "probe/numerics/format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "probe/numerics/scan_element.h"

namespace nanquest {
namespace {

TEST(Format, ConstantsFollowFromTheLayout) {
  for (int i = 0; i < kFormatCount; ++i) {
    const auto format = static_cast<Format>(i);
    const FormatInfo& f = info(format);
    SCOPED_TRACE(std::string(f.name));
    EXPECT_EQ(f.bias, (1 << (f.exponent_bits - 1)) - 1);
    EXPECT_EQ(f.min_exponent, 1 - f.bias);
    EXPECT_EQ(f.min_normal, std::ldexp(1, f.min_exponent));
    EXPECT_EQ(f.min_subnormal, std::ldexp(1, f.min_exponent - f.mantissa_bits));
    EXPECT_EQ(f.max_exponent, std::ilogb(f.max_finite));
    EXPECT_EQ(f.max_exponent, f.has_infinity ? f.bias : f.bias + 1);
    for (const double x :
         {f.max_finite, f.min_normal, f.min_subnormal, 1.0, 0.0, -f.max_finite, -f.min_subnormal})
      EXPECT_EQ(round_to(format, x), x);
    EXPECT_TRUE(std::signbit(round_to(format, -0.0)));
    EXPECT_TRUE(std::isnan(round_to(format, NAN)));
    EXPECT_EQ(std::isinf(round_to(format, INFINITY)), f.has_infinity);
  }
  EXPECT_FALSE(format_of(DType::int32).has_value());
  EXPECT_FALSE(format_of(DType::complex64).has_value());
  EXPECT_EQ(format_of(DType::float8_e5m2), Format::fp8_e5m2);
}

TEST(Format, Tf32RoundsToTenBitsTiesToEven) {
  const double ulp = 0x1p-10;
  EXPECT_EQ(round_to(Format::tf32, 1 + ulp), 1 + ulp);
  EXPECT_EQ(round_to(Format::tf32, 1 + ulp / 2), 1);                  // tie, down to even
  EXPECT_EQ(round_to(Format::tf32, 1 + 3 * ulp / 2), 1 + 2 * ulp);    // tie, up to even
  EXPECT_EQ(round_to(Format::tf32, 1 + ulp / 2 + 0x1p-23), 1 + ulp);  // just above the tie
  EXPECT_EQ(round_to(Format::tf32, 2 - ulp / 4), 2);                  // the carry reaches the exponent
  EXPECT_EQ(encode(Format::tf32, 1 + ulp), 0x3f802000u);
  EXPECT_EQ(encode(Format::tf32, -1.0), 0xbf800000u);
  EXPECT_EQ(round_to(Format::tf32, 0x1.fffffep127), INFINITY);
  EXPECT_EQ(round_to(Format::tf32, 0x1.ffcp127), 0x1.ffcp127);
  EXPECT_EQ(round_to(Format::tf32, 0x1p-136), 0x1p-136);
  EXPECT_EQ(round_to(Format::tf32, 0x1p-137), 0);  // half of the smallest: tie to even
  EXPECT_EQ(round_to(Format::tf32, 0x1.8p-137), 0x1p-136);
}

TEST(Format, Fp32RoundsLikeTheProcessor) {
  for (const double x : {0.1, 1.0 / 3, 1 + 0x1p-24, 1 + 0x1.8p-23, 0x1.fffffefp127, 0x1.ffffffp127, 0x1p-149,
                         0x1p-150, 0x1.000001p-150, 0x1.23456789p-140, 1e300, 1e-300, -2.5e-42})
    EXPECT_EQ(encode(Format::fp32, x), std::bit_cast<std::uint32_t>(static_cast<float>(x))) << x;
}

TEST(Format, BordersOfFp8ByHand) {
  EXPECT_EQ(round_to(Format::fp8_e4m3, 464), 448);  // tie between 448 and the missing 480: even is 448
  EXPECT_TRUE(std::isnan(round_to(Format::fp8_e4m3, 464.001)));
  EXPECT_EQ(encode(Format::fp8_e4m3, -1e9), 0xffu);
  EXPECT_EQ(round_to(Format::fp8_e5m2, 61439), 57344);
  EXPECT_EQ(round_to(Format::fp8_e5m2, 61440), INFINITY);  // tie, even is infinity
  EXPECT_EQ(round_to(Format::fp8_e4m3, 0x1p-10), 0);
  EXPECT_EQ(round_to(Format::fp8_e4m3, 0x1.8p-10), 0x1p-9);
}

TEST(Format, HeadroomIsInBits) {
  EXPECT_EQ(headroom_bits(Format::fp16, 65504), 0);
  EXPECT_EQ(headroom_bits(Format::fp16, 65504.0 / 8), 3);
  EXPECT_EQ(headroom_bits(Format::fp16, 65504.0 * 4), -2);
  EXPECT_EQ(headroom_bits(Format::fp16, 0), INFINITY);
  EXPECT_NEAR(headroom_bits(Format::fp64, 0x1p-1074), 2098, 1e-9);
}

TEST(Element, PatternsOfDoubleAgreeWithDecoding) {
  for (std::uint32_t bits = 1; bits < LayoutFp16::kFirstBad; ++bits) {
    const auto abs = static_cast<std::uint16_t>(bits);
    EXPECT_EQ(double_from_bits(LayoutFp16::double_bits(abs)), decode(Format::fp16, bits));
    EXPECT_EQ(LayoutFp16::exponent(abs), std::ilogb(decode(Format::fp16, bits)));
  }
}

// The device merges what its threads counted in any order; the CPU can run the same code.
TEST(Element, StatsMergeInAnyOrder) {
  const float values[] = {1, -2, NAN, 0, 1e-40F, INFINITY, -INFINITY, 3, -0.0F, 0.5F};
  ElementStats whole, parts[3], merged;
  for (std::uint64_t i = 0; i < 10; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    whole.add<LayoutFp32>(bits, i);
    parts[i % 3].add<LayoutFp32>(bits, i);
  }
  for (const int p : {2, 0, 1}) merged.merge(parts[p]);
  const ScanResult a = result_of<LayoutFp32>(whole, 10), b = result_of<LayoutFp32>(merged, 10);
  EXPECT_EQ(a.nan, 1u);
  EXPECT_EQ(a.first_bad, 2);
  EXPECT_EQ(a.zero, 2u);
  EXPECT_EQ(a.subnormal, 1u);
  EXPECT_EQ(a.amin_nonzero, static_cast<double>(1e-40F));
  EXPECT_EQ(b.nan, a.nan);
  EXPECT_EQ(b.pos_inf, 1u);
  EXPECT_EQ(b.neg_inf, 1u);
  EXPECT_EQ(b.first_bad, a.first_bad);
  EXPECT_EQ(b.amax, 3);
  EXPECT_EQ(b.amin_nonzero, a.amin_nonzero);
  EXPECT_EQ(b.sum_squares, 1 + 4 + 9 + 0.25);
}

}  // namespace
}  // namespace nanquest
