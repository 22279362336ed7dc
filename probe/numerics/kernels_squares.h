// Σx² of blocks of finite numbers. Included only by kernels.h, once per instruction set; the rules at its top
// apply.
#pragma once

#include "probe/numerics/kernels_fetch.h"
#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

/// The sum of all lanes, in one order for every vector width: the upper half is added to the lower until one
/// is left.
template <int N>
double fold(double (&lanes)[N]) {
  for (int half = N / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

double fold(const VecDouble (&vectors)[2 * kParts]) {
  double lanes[16];
  __builtin_memcpy(lanes, vectors, sizeof lanes);
  return fold(lanes);
}

double squares_fp64(const void* data, std::size_t n, Ahead ahead) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  const auto add = [&](const char* lines) __attribute__((always_inline)) {
    for (int k = 0; k < 2 * kParts; ++k) {
      VecDouble x;
      load(x, lines + k * kBytes);
      const VecDouble square = x * x;
      sum[k] += square;
    }
  };
  std::size_t i = for_lines<Pass::squares, 2 * kLine>(p, n * 8, ahead, add) / 8;
  double total = fold(sum);
  for (; i < n; ++i) {
    double x;
    load(x, p + i * 8);
    total += x * x;
  }
  return total;
}

double squares_fp32(const void* data, std::size_t n, Ahead ahead) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  std::size_t i = for_lines<Pass::squares>(
                      p, n * 4, ahead,
                      [&](const char* line) __attribute__((always_inline)) {
                        for (int k = 0; k < 2 * kParts; ++k)
                          sum[k] = add_exact_square(widen_fp32(line + k * (kBytes / 2)), sum[k]);
                      }) /
                  4;
  double total = fold(sum);
  for (; i < n; ++i) {
    float f;
    load(f, p + i * 4);
    const double x = static_cast<double>(f);
    total += x * x;
  }
  return total;
}

/// Σ of squares in 32 lanes of fp32, with the rounding error of every addition collected (Dekker's fast
/// two-sum). A square of a 16-bit float is exact in fp32. `sum` starts at `ceiling` and is never below a
/// summand, which makes the error term `x² + (sum - next)` exact. The remaining error is the rounding inside
/// `error`: below 2^-30 of the result.
struct CaughtSum {
  static constexpr int N = 2 * kParts;
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
  [[gnu::always_inline]] inline double total(float ceiling) const {
    float sums[32], errors[32];
    __builtin_memcpy(sums, sum, sizeof sums);
    __builtin_memcpy(errors, error, sizeof errors);
    double lanes[32];
    for (int i = 0; i < 32; ++i)
      lanes[i] =
          (static_cast<double>(sums[i]) - static_cast<double>(ceiling)) + static_cast<double>(errors[i]);
    return fold(lanes);
  }
};

[[gnu::always_inline]] inline void add_fp16_line(CaughtSum& sum, const char* p) {
  for (int k = 0; k < sum.N; ++k) sum.add(k, widen_fp16(p + k * (kBytes / 2)));
}

double squares_fp16(const void* data, std::size_t n, float ceiling, Ahead ahead) {
  const auto* p = static_cast<const char*>(data);
  CaughtSum sum;
  sum.start(ceiling);
  const std::size_t i =
      for_lines<Pass::squares>(
          p, n * 2,
          ahead, [&](const char* line) __attribute__((always_inline)) { add_fp16_line(sum, line); }) /
      2;
  double total = sum.total(ceiling);
  if (i < n) {
    std::uint16_t last[32] = {};
    __builtin_memcpy(last, p + i * 2, (n - i) * 2);
    sum.start(ceiling);
    add_fp16_line(sum, reinterpret_cast<const char*>(last));
    total += sum.total(ceiling);
  }
  return total;
}

[[gnu::always_inline]] inline void add_bf16_line(CaughtSum& sum, const char* p) {
  for (int k = 0; k < kParts; ++k) {
    VecU32 pair;
    load(pair, p + k * kBytes);
    sum.add(k, (VecFloat)(pair << 16));
    sum.add(kParts + k, (VecFloat)(pair & 0xffff0000U));
  }
}

/// While it exists, fp32 subnormals are read as zero and not produced; the destructor restores the thread's
/// setting.
class SubnormalsAreZero {
#if defined(__SSE2__)
 public:
  SubnormalsAreZero() : before_(__builtin_ia32_stmxcsr()) {
    __builtin_ia32_ldmxcsr(before_ | 0x8040);
  }
  ~SubnormalsAreZero() {
    __builtin_ia32_ldmxcsr(before_);
  }

 private:
  unsigned before_;
#endif
};

double squares_bf16(const void* data, std::size_t n, float ceiling, Ahead ahead) {
  // Values below 2^-126 do not count beside the block's largest, at least 2^-80, but some processors stall
  // for 100 cycles at each vector with such a number.
  [[maybe_unused]] const SubnormalsAreZero quick;
  const auto* p = static_cast<const char*>(data);
  CaughtSum sum;
  sum.start(ceiling);
  const std::size_t i =
      for_lines<Pass::squares>(
          p, n * 2,
          ahead, [&](const char* line) __attribute__((always_inline)) { add_bf16_line(sum, line); }) /
      2;
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
