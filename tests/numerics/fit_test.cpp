// Fit of values in another format at a loss scale: compared with PyTorch's own casts, and by hand.
#include "probe/numerics/fit.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

namespace nanquest {
namespace {

[[maybe_unused]] std::ostream& operator<<(std::ostream& out, const Fit& fit) {
  return out << fit.overflow << " overflow, " << fit.flushed << " flushed, " << fit.subnormal << " subnormal";
}

/// float32 patterns i * 2654435761 mod 2^32, i below 65536: all exponents, both signs.
FitCounts spread() {
  FitCounts counts;
  for (std::uint32_t i = 0; i < 65536; ++i)
    counts.add(static_cast<double>(std::bit_cast<float>(i * 2654435761U)));
  return counts;
}

/// Made by PyTorch 2.15: (x.double() * 2**scale).float().to(format), counted. PyTorch saturates in
/// float8_e4m3fn: overflow there is |x| * 2^scale > 464, the middle between 448 and the number that would
/// follow (numpy).
TEST(Fit, CountsWhatPyTorchsCastsGive) {
  struct Case {
    int scale;
    Format format;
    Fit fit;
  };
  const FitCounts counts = spread();
  EXPECT_EQ(counts.count(), 65279U);
  for (const Case& c : {Case{0, Format::fp32, {0, 0, 256}},
                        {0, Format::bf16, {1, 1, 254}},
                        {0, Format::fp16, {28671, 26111, 2815}},
                        {0, Format::fp8_e5m2, {28703, 28160, 704}},
                        {0, Format::fp8_e4m3, {30511, 29952, 992}},
                        {16, Format::fp32, {4096, 0, 0}},
                        {16, Format::bf16, {4097, 0, 0}},
                        {16, Format::fp16, {32767, 22016, 2815}},
                        {16, Format::fp8_e5m2, {32799, 24063, 705}},
                        {16, Format::fp8_e4m3, {34608, 25856, 990}},
                        {-10, Format::fp32, {0, 0, 2816}},
                        {-10, Format::bf16, {0, 768, 2044}},
                        {-10, Format::fp16, {26111, 28671, 2817}},
                        {-10, Format::fp8_e5m2, {26142, 30719, 705}},
                        {-10, Format::fp8_e4m3, {27950, 32513, 990}},
                        {64, Format::fp32, {16382, 0, 0}},
                        {64, Format::bf16, {16383, 0, 0}},
                        {64, Format::fp16, {45056, 9728, 2815}},
                        {64, Format::fp8_e5m2, {45086, 11776, 705}},
                        {64, Format::fp8_e4m3, {46895, 13567, 992}}})
    EXPECT_EQ(counts.in(c.format, c.scale), c.fit) << info(c.format).name << " at 2^" << c.scale;
}

/// The ends of each format and their neighbours, at scales that move them: compared with the rounding itself.
TEST(Fit, AtTheEndsItIsWhatRoundingSays) {
  for (const Format format : kFitFormats) {
    const FormatInfo& f = info(format);
    for (const double end :
         {f.max_finite, std::ldexp(1.0, f.max_exponent + 1), f.min_normal, f.min_subnormal,
          f.min_subnormal / 2, f.max_finite + std::ldexp(1.0, f.max_exponent - f.mantissa_bits - 1)})
      for (const double x : {end, std::nextafter(end, 0), std::nextafter(end, HUGE_VAL), end * (1 - 0x1p-24),
                             end * (1 + 0x1p-23), end * 0.999})
        for (const int scale : {0, 1, 13, -13, 64, -64}) {
          FitCounts counts;
          counts.add(-std::ldexp(x, -scale));
          const double there = round_to(format, x);
          const bool finite = std::isfinite(there), zero = there == 0;
          EXPECT_EQ(counts.in(format, scale), (Fit{finite ? 0U : 1U, zero ? 1U : 0U,
                                                   finite && !zero && there < f.min_normal ? 1U : 0U}))
              << f.name << ' ' << x << " at 2^" << scale;
        }
  }
}

TEST(Fit, WhatIsFarAwayOrNoNumberIsNoTrouble) {
  FitCounts counts;
  for (const double x : {0.0, -0.0, std::nan(""), HUGE_VAL, -HUGE_VAL}) counts.add(x);
  EXPECT_EQ(counts.count(), 0U);
  EXPECT_EQ(counts.in(Format::fp16), Fit{});
  counts.add(1e308);
  counts.add(5e-324);
  for (const Format format : kFitFormats)
    for (const int scale : {-kMostFitScale, 0, kMostFitScale})
      EXPECT_EQ(counts.in(format, scale), (Fit{1, 1, 0}));
}

/// fp16 ends at 65504 and begins at 2^-24: 1 and 3 do not overflow up to 2^14, and are not flushed from 2^-24
/// on.
TEST(Fit, ScalesThatHurtNothing) {
  FitCounts counts;
  counts.add(1);
  counts.add(-3);
  EXPECT_EQ(counts.scales(Format::fp16).highest, 14);
  EXPECT_EQ(counts.scales(Format::fp16).lowest, -24);
  EXPECT_EQ(counts.scales(Format::fp32).highest, kMostFitScale);
  counts.add(0x1p-60);
  const FitScales none = counts.scales(Format::fp16);
  EXPECT_GT(none.lowest, none.highest);
  EXPECT_EQ(none.lowest, 36);
  counts.add(0x1p-200);
  EXPECT_GT(counts.scales(Format::fp16).lowest, kMostFitScale);
}

}  // namespace
}  // namespace nanquest
