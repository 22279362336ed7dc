// PyTorch's own casts are the independent reference: every pattern of the small formats, and rounding at
// every border.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "probe/numerics/format.h"

namespace nanquest {
namespace {

struct Pair {
  Format format;
  at::ScalarType type;
};
const Pair kPairs[] = {{Format::fp16, at::kHalf},
                       {Format::bf16, at::kBFloat16},
                       {Format::fp8_e4m3, at::kFloat8_e4m3fn},
                       {Format::fp8_e5m2, at::kFloat8_e5m2}};

std::uint64_t element_bits(const at::Tensor& t, std::int64_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(t.data_ptr()) + i * static_cast<std::int64_t>(t.element_size()),
              static_cast<std::size_t>(t.element_size()));
  return bits;
}

TEST(FormatVsTorch, EveryPatternDecodesAndEncodesAlike) {
  for (const auto& [format, type] : kPairs) {
    SCOPED_TRACE(std::string(info(format).name));
    const std::int64_t count = std::int64_t{1} << info(format).storage_bits;
    at::Tensor all = at::empty({count}, at::TensorOptions().dtype(type));
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(all.data_ptr()) + i * static_cast<std::int64_t>(all.element_size()), &i,
                  static_cast<std::size_t>(all.element_size()));
    const at::Tensor wide = all.to(at::kDouble);
    for (std::int64_t i = 0; i < count; ++i) {
      const double theirs = wide.data_ptr<double>()[i];
      const double ours = decode(format, static_cast<std::uint64_t>(i));
      ASSERT_EQ(std::isnan(ours), std::isnan(theirs)) << i;
      if (std::isnan(ours)) continue;
      ASSERT_EQ(ours, theirs) << i;
      ASSERT_EQ(std::signbit(ours), std::signbit(theirs)) << i;
      ASSERT_EQ(encode(format, ours), static_cast<std::uint64_t>(i));
    }
  }
}

/// Compares encode with the cast of `values` to each format; NaN only as NaN, since its sign and payload
/// differ between PyTorch's own code paths.
void expect_same_casts(const at::Tensor& values) {
  const at::Tensor wide = values.to(at::kDouble);
  for (const auto& [format, type] : kPairs) {
    SCOPED_TRACE(std::string(info(format).name));
    const at::Tensor cast = values.to(type);
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const double x = wide.data_ptr<double>()[i];
      const std::uint64_t ours = encode(format, x), theirs = element_bits(cast, i);
      if (format == Format::fp8_e4m3 && std::fabs(static_cast<float>(x)) > 464) {
        // PyTorch's releases differ here: NaN, or (2.15) the largest number, even for Inf. nanquest uses
        // OCP's unsaturated NaN.
        ASSERT_TRUE(std::isnan(decode(format, ours))) << x;
        ASSERT_TRUE(std::isnan(decode(format, theirs)) || std::fabs(decode(format, theirs)) == 448) << x;
      } else if (std::isnan(decode(format, theirs))) {
        ASSERT_TRUE(std::isnan(decode(format, ours))) << x;
      } else {
        ASSERT_EQ(ours, theirs) << x;
      }
    }
  }
}

/// Every number of the format, every midpoint between neighbours, and the values just beside those.
at::Tensor borders(Format format, at::ScalarType type) {
  std::vector<double> out;
  const std::uint64_t half = std::uint64_t{1} << (info(format).storage_bits - 1);
  for (std::uint64_t bits = 0; bits + 1 < half; ++bits) {
    const double a = decode(format, bits), b = decode(format, bits + 1);
    if (!std::isfinite(a)) break;
    const double middle = std::isfinite(b)
                              ? (a + b) / 2
                              : a + std::ldexp(1, info(format).max_exponent - info(format).mantissa_bits - 1);
    for (const double x :
         {a, middle, std::nextafter(static_cast<float>(middle), INFINITY) * 1.0,
          std::nextafter(static_cast<float>(middle), 0.0F) * 1.0, std::nextafter(middle, 1e300)})
      for (const double s : {x, -x}) out.push_back(s);
  }
  return at::tensor(out, at::kDouble).to(type);
}

TEST(FormatVsTorch, TiesAndTheirNeighboursRoundAlike) {
  for (const auto& [format, type] : kPairs)
    for (const auto source : {at::kFloat, at::kDouble}) expect_same_casts(borders(format, source));
}

TEST(FormatVsTorch, RandomBitsRoundAlike) {
  std::mt19937_64 rng(1);
  at::Tensor single = at::empty({200000}, at::kFloat), wide = at::empty({200000}, at::kDouble);
  for (std::int64_t i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(rng());
    std::memcpy(single.data_ptr<float>() + i, &bits, 4);
    wide.data_ptr<double>()[i] =
        std::ldexp(static_cast<double>(rng() >> 11) * 0x1p-53 - 0.5, static_cast<int>(rng() % 300) - 150);
  }
  expect_same_casts(single);
  expect_same_casts(wide);
}

TEST(FormatVsTorch, DoublesRoundToFloatAlike) {
  std::mt19937_64 rng(2);
  at::Tensor wide = at::empty({100000}, at::kDouble);
  for (std::int64_t i = 0; i < wide.numel(); ++i)
    wide.data_ptr<double>()[i] =
        std::ldexp(static_cast<double>(rng() >> 11) * 0x1p-53 - 0.5, static_cast<int>(rng() % 300) - 160);
  const at::Tensor cast = wide.to(at::kFloat);
  for (std::int64_t i = 0; i < wide.numel(); ++i)
    ASSERT_EQ(encode(Format::fp32, wide.data_ptr<double>()[i]), element_bits(cast, i));
}

}  // namespace
}  // namespace nanquest
