#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "probe/numerics/float_scan.h"
#include "tests/numerics/naive_scan.h"
#include "tests/numerics/random_bits.h"

namespace nanquest {
namespace {

using testing::kMixes;
using testing::Mix;
using testing::naive_scan;
using testing::random_elements;

constexpr DType kTypes[] = {DType::float64, DType::float32, DType::float16, DType::bfloat16};

/// Every implementation's histogram equals the naive one plus its previous contents.
void expect_exponents(DType type, const std::vector<unsigned char>& data) {
  const std::size_t n = data.size() / dtype_size(type);
  ExponentHistogram want{};
  want.fill(3);
  naive_scan(type, data.data(), n, &want);
  for (const detail::Implementation* with : detail::implementations()) {
    ExponentHistogram got{};
    got.fill(3);
    detail::scan_float(*with, type, data.data(), n, &got);
    EXPECT_EQ(got, want) << with->name << ' ' << dtype_name(type) << " n " << n;
  }
}

std::vector<unsigned char> elements(DType type, std::size_t n, const std::function<double(std::size_t)>& f) {
  std::vector<unsigned char> data(n * dtype_size(type));
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = encode(*format_of(type), f(i));
    std::memcpy(data.data() + i * dtype_size(type), &bits, dtype_size(type));
  }
  return data;
}

TEST(ExponentHistogram, EveryTableCountsEveryMix) {
  std::mt19937_64 rng(21);
  for (const DType type : kTypes)
    for (const Mix mix : kMixes)
      for (const std::size_t n :
           {1u, 15u, 64u, 500u, 1023u, 1024u, 1025u, 2048u, 4095u, 4096u, 4097u, 20001u})
        expect_exponents(type, random_elements(type, n, mix, rng));
}

// The kernels search exponents sixteen at a time from the largest down, and stop that after 128.
TEST(ExponentHistogram, AnyNumberOfExponentsInABlock) {
  std::mt19937_64 rng(22);
  for (const DType type : kTypes) {
    const FormatInfo& f = info(*format_of(type));
    const int low = std::ilogb(f.min_subnormal), high = std::ilogb(f.max_finite);
    for (int span = 1; span <= high - low; span += span < 40 ? 3 : 29)
      for (const int top : {high, low + span})
        expect_exponents(type, elements(type, 5000, [&](std::size_t) {
                           const int e = top - static_cast<int>(rng() % static_cast<unsigned>(span));
                           return std::ldexp(rng() % 2 ? 1.0 : -1.0, std::clamp(e, low, high));
                         }));
  }
}

TEST(ExponentHistogram, OneElementFarFromAllOthers) {
  for (const DType type : kTypes) {
    const FormatInfo& f = info(*format_of(type));
    for (const double odd : {f.min_subnormal, f.min_normal, f.max_finite, 0.0, std::nan(""), HUGE_VAL})
      for (const double usual : {0.0, 1.0, f.min_normal, f.max_finite, f.min_subnormal})
        for (const std::size_t at : {0u, 64u, 4999u})
          expect_exponents(type, elements(type, 5000, [&](std::size_t i) { return i == at ? odd : usual; }));
  }
}

}  // namespace
}  // namespace nanquest
