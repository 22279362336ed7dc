// Σx² of blocks of finite numbers.
// Included by kernels_impl.h alone, once per instruction set; the rules at its top hold here.
#pragma once

#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

/// Folds lanes in their order, so that every vector width gives the same sum.
template <class V, int N>
double fold(const V (&lanes)[N]) {
  double sum = 0;
  for (int i = 0; i < N; ++i)
    for (unsigned j = 0; j < sizeof(V) / sizeof(lanes[0][0]); ++j) sum += static_cast<double>(lanes[i][j]);
  return sum;
}

double squares_fp64(const void* data, std::size_t n) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 2 * kParts; ++k) {
      VecDouble x;
      load(x, p + i * 8 + k * kBytes);
      const VecDouble square = x * x;
      sum[k] += square;
    }
  double total = fold(sum);
  for (; i < n; ++i) {
    double x;
    load(x, p + i * 8);
    total += x * x;
  }
  return total;
}

double squares_fp32(const void* data, std::size_t n) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 2 * kParts; ++k) sum[k] = add_exact_square(widen_fp32(p + i * 4 + k * (kBytes / 2)), sum[k]);
  double total = fold(sum);
  for (; i < n; ++i) {
    float f;
    load(f, p + i * 4);
    const double x = static_cast<double>(f);
    total += x * x;
  }
  return total;
}

/// Σ of squares in fp32 with the rounding error of every addition caught (Dekker's fast two-sum). A square of a
/// 16-bit float is exact in fp32; `sum` starts at `ceiling`, never below a summand, which is what makes the error term
/// `x² + (sum - next)` exact. What remains is the rounding inside `error`: below 2^-30 of the result.
template <int N>
struct CaughtSum {
  VecFloat sum[N];
  VecFloat error[N];

  [[gnu::always_inline]] inline void start(float ceiling) {
    for (int k = 0; k < N; ++k) {
      sum[k] = VecFloat{} + ceiling;
      error[k] = VecFloat{};
    }
  }
  [[gnu::always_inline]] inline void add(int k, VecFloat x) {
    const VecFloat next = add_exact_square(x, sum[k]);
    error[k] += add_exact_square(x, sum[k] - next);
    sum[k] = next;
  }
  double total(float ceiling) const {
    const double lanes = N * (kBytes / 4);
    return (fold(sum) - lanes * static_cast<double>(ceiling)) + fold(error);
  }
};

double squares_fp16(const void* data, std::size_t n, float ceiling) {
  const auto* p = static_cast<const char*>(data);
  CaughtSum<2 * kParts> sum;
  sum.start(ceiling);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 2 * kParts; ++k) sum.add(k, widen_fp16(p + i * 2 + k * (kBytes / 2)));
  double total = sum.total(ceiling);
  if (i < n) {
    std::uint16_t last[32] = {};
    __builtin_memcpy(last, p + i * 2, (n - i) * 2);
    sum.start(ceiling);
    for (int k = 0; k < 2 * kParts; ++k) sum.add(k, widen_fp16(reinterpret_cast<const char*>(last) + k * (kBytes / 2)));
    total += sum.total(ceiling);
  }
  return total;
}

[[gnu::always_inline]] inline void add_bf16_line(CaughtSum<2 * kParts>& sum, const char* p) {
  for (int k = 0; k < kParts; ++k) {
    VecU32 pair;
    load(pair, p + k * kBytes);
    sum.add(k, (VecFloat)(pair << 16));
    sum.add(kParts + k, (VecFloat)(pair & 0xffff0000U));
  }
}

double squares_bf16(const void* data, std::size_t n, float ceiling) {
  const auto* p = static_cast<const char*>(data);
  CaughtSum<2 * kParts> sum;
  sum.start(ceiling);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) add_bf16_line(sum, p + i * 2);
  double total = sum.total(ceiling);
  if (i < n) {
    std::uint16_t last[32] = {};
    __builtin_memcpy(last, p + i * 2, (n - i) * 2);
    sum.start(ceiling);
    add_bf16_line(sum, reinterpret_cast<const char*>(last));
    total += sum.total(ceiling);
  }
  return total;
}

}  // namespace
}  // namespace nanquest::detail
