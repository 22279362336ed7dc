/// Random memory with values that are difficult for scans: NaN, Inf, subnormals, zeros of both signs,
/// borders, and any bits.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "probe/numerics/format.h"

namespace nanquest::testing {

/// The kind of values in a test tensor.
enum class Mix { ordinary, with_zeros, with_subnormals, hostile, any_bits, only_zeros, only_bad };
inline constexpr Mix kMixes[] = {Mix::ordinary, Mix::with_zeros, Mix::with_subnormals, Mix::hostile,
                                 Mix::any_bits, Mix::only_zeros, Mix::only_bad};

inline std::vector<unsigned char> random_elements(DType type, std::size_t n, Mix mix, std::mt19937_64& rng) {
  const Format format = *format_of(type);
  const FormatInfo& f = info(format);
  const std::size_t size = dtype_size(type);
  std::vector<unsigned char> bytes(n * size);
  const double borders[] = {NAN,           INFINITY,     -INFINITY,      f.max_finite,
                            -f.max_finite, f.min_normal, f.min_subnormal};
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned pick = static_cast<unsigned>(rng() % 8);
    double x = normal(rng) * 0.5;
    if (x == 0 || std::fabs(x) < f.min_normal) x = 1;
    if (mix == Mix::with_zeros && pick < 3) x = pick == 0 ? -0.0 : 0.0;
    if (mix == Mix::with_subnormals && pick < 3)
      x = (pick == 0 ? -1 : 1) * f.min_subnormal * static_cast<double>(1 + rng() % 3);
    if (mix == Mix::hostile) x = pick < 4 ? borders[rng() % 7] : x * f.max_finite / 64;
    if (mix == Mix::only_zeros) x = pick < 4 ? 0.0 : -0.0;
    if (mix == Mix::only_bad) x = borders[rng() % 3];
    const std::uint64_t bits = mix == Mix::any_bits ? rng() : encode(format, x);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

}  // namespace nanquest::testing
