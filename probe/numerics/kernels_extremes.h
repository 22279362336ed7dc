// Extremes of magnitude patterns, and the loop that reads a vector at a time. Included only by kernels.h,
// once per instruction set; the rules at its top apply.
#pragma once

#include "probe/numerics/kernels_fetch.h"
#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

/// A vector of elements as signed numbers: magnitudes have no sign bit, and signed comparisons are native.
template <class T>
struct Signed {
  typedef decltype([] {
    if constexpr (sizeof(T) == 1) return std::int8_t{};
    if constexpr (sizeof(T) == 2) return std::int16_t{};
    if constexpr (sizeof(T) == 4) return std::int32_t{};
    if constexpr (sizeof(T) == 8) return std::int64_t{};
  }()) Element;
  typedef Element Vec __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / sizeof(T);
};

/// All lanes of `v` joined by `op`: the upper half with the lower half, until one lane is left.
template <class T, class Op>
[[gnu::always_inline]] inline T fold_lanes(const typename Signed<T>::Vec& v, Op op) {
  T lanes[Signed<T>::kLanes];
  __builtin_memcpy(lanes, &v, sizeof v);
  for (int half = Signed<T>::kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] = op(lanes[i], lanes[i + half]);
  return lanes[0];
}

constexpr auto kSmaller = [](auto a, auto b) __attribute__((always_inline)) {
  return a < b ? a : b;
};
constexpr auto kLarger = [](auto a, auto b) __attribute__((always_inline)) {
  return a > b ? a : b;
};
constexpr auto kSum = [](auto a, auto b) __attribute__((always_inline)) {
  return static_cast<decltype(a)>(a + b);
};

/// Calls `f(vector, k)` for every whole vector of the bytes, and returns the number of these bytes. `k`
/// counts the vectors of a cache line: results that are kept separate by k do not wait for each other.
template <class V, Pass pass = Pass::counts, class F>
[[gnu::always_inline]] inline std::size_t for_vectors(const char* p, std::size_t bytes, Ahead ahead, F&& f) {
  const auto one = [&](const char* at, int k) __attribute__((always_inline)) {
    V bits;
    load(bits, at);
    f(bits, k);
  };
  std::size_t i = for_lines<pass>(
      p, bytes, ahead, [&](const char* line) __attribute__((always_inline)) {
        for (int k = 0; k < kParts; ++k) one(line + k * kBytes, k);
      });
  for (; i + kBytes <= bytes; i += kBytes) one(p + i, 0);
  return i;
}

template <class T>
T largest(const void* data, std::size_t n, T abs_mask, Ahead ahead) {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  const auto* p = static_cast<const char*>(data);
  const std::size_t bytes = n * sizeof(T);
  const V mask = V{} + static_cast<E>(abs_mask);
  V high[kParts] = {};
  const auto add = [&](V bits, int k) __attribute__((always_inline)) {
    const V abs = bits & mask;
    high[k] = abs > high[k] ? abs : high[k];
  };
  const std::size_t done = for_vectors<V, Pass::only>(p, bytes, ahead, add);
  if (done < bytes) {
    V last{};
    __builtin_memcpy(&last, p + done, bytes - done);
    add(last, 0);
  }
  for (int k = 1; k < kParts; ++k) add(high[k], 0);
  return fold_lanes<T>(high[0], kLarger);
}

template <class T>
Range range(const void* data, std::size_t n, T abs_mask, Ahead ahead) {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  const auto* p = static_cast<const char*>(data);
  const std::size_t bytes = n * sizeof(T);
  const V mask = V{} + static_cast<E>(abs_mask);
  V low[kParts], high[kParts] = {};
  for (V& one : low) one = mask;
  const auto add = [&](V bits, int k) __attribute__((always_inline)) {
    const V abs = bits & mask;
    low[k] = abs < low[k] ? abs : low[k];
    high[k] = abs > high[k] ? abs : high[k];
  };
  const std::size_t done = for_vectors<V>(p, bytes, ahead, add);
  V last;
  if (done < bytes && bytes >= kBytes) {  // counting an element twice does not change an extreme
    load(last, p + bytes - kBytes);
    add(last, 0);
  } else if (done < bytes) {
    T first;
    load(first, p);
    last = V{} + static_cast<E>(first);
    __builtin_memcpy(&last, p, bytes);
    add(last, 0);
  }
  for (int k = 1; k < kParts; ++k) {
    low[0] = low[k] < low[0] ? low[k] : low[0];
    high[0] = high[k] > high[0] ? high[k] : high[0];
  }
  return {fold_lanes<T>(low[0], kSmaller), fold_lanes<T>(high[0], kLarger)};
}

}  // namespace
}  // namespace nanquest::detail
