/// scan: statistics of a tensor's values in one pass over memory.
///
/// The room knows bytes and number formats, not torch. A scan never allocates for contiguous memory, never
/// throws (except CheckFailed for an impossible view or type), and reads every element once.
///
///     ScanResult r = scan(DType::float16, data, n);
///     if (r.non_finite()) … r.first_bad …
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "probe/base/dtype.h"
#include "probe/numerics/hash.h"

namespace nanquest {

/// Bins of the exponent histogram: bin i counts finite, non-zero values with
/// floor(log2(|x|)) == kHistogramMinExponent + i; values outside are counted in the end bins.
inline constexpr int kHistogramMinExponent = -150;
inline constexpr int kHistogramBins = 280;  // -150 … 129: all of fp32, its subnormals, and some room

/// What one pass found. Integers and bool count zeros and amax only; complex numbers are scanned
/// as pairs of reals (indices then count reals).
struct ScanResult {
  std::uint64_t count = 0;  ///< elements seen
  std::uint64_t nan = 0;
  std::uint64_t pos_inf = 0;
  std::uint64_t neg_inf = 0;
  std::uint64_t zero = 0;       ///< +0 and -0
  std::uint64_t subnormal = 0;  ///< in the element's own format
  std::int64_t first_bad = -1;  ///< logical index of the first non-finite element, -1 if none
  double amax = 0;              ///< largest |x| of the finite elements, 0 if none
  double amin_nonzero = 0;      ///< smallest |x| > 0 of the finite elements, 0 if none
  double sum_squares = 0;       ///< Σx² of the finite elements, in fp64 (16-bit types: within 2^-30 of it)

  std::uint64_t non_finite() const { return nan + pos_inf + neg_inf; }
  std::uint64_t infinite() const { return pos_inf + neg_inf; }
  /// Adds the result of another pass over the elements that follow.
  void merge(const ScanResult& later);
};

using ExponentHistogram = std::array<std::uint64_t, kHistogramBins>;

/// Scans `n` contiguous elements. Thread-safe, no allocation. `histogram` may be null; counts are added to
/// it, it is not cleared.
ScanResult scan(DType type, const void* data, std::size_t n, ExponentHistogram* histogram = nullptr);

/// Scans a strided view in logical (row-major) order; strides in elements, may be 0 or negative. `data`
/// points to the element with all indices 0. `sizes` and `strides` have equal length.
ScanResult scan_strided(DType type, const void* data, std::span<const std::int64_t> sizes,
                        std::span<const std::int64_t> strides, ExponentHistogram* histogram = nullptr);

/// Whether any element is non-finite: the cheapest pass, stops early. False for integers.
bool any_non_finite(DType type, const void* data, std::size_t n);

/// Hash of a strided view: equals `hash_contents` of its contiguous copy. `element_size` is 1 … 1024 bytes.
std::uint64_t hash_strided(std::size_t element_size, const void* data, std::span<const std::int64_t> sizes,
                           std::span<const std::int64_t> strides);

/// The same for `hash_bytes`.
std::uint64_t hash_bytes_strided(std::size_t element_size, const void* data,
                                 std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);

/// The result of `scan_and_hash`.
struct ScanAndHash {
  ScanResult scan;
  std::uint64_t hash = 0;
};

/// `scan` and `hash_contents` of the same memory, piece by piece, so that the hash reads from the cache.
/// Equal to the two calls, except that Σx² is summed by parts of 512 KiB and may differ by rounding.
/// Thread-safe, no allocation.
ScanAndHash scan_and_hash(DType type, const void* data, std::size_t n,
                          ExponentHistogram* histogram = nullptr);

/// `scan_strided` and `hash_strided` in one walk over the view. Thread-safe, no allocation.
ScanAndHash scan_and_hash_strided(DType type, const void* data, std::span<const std::int64_t> sizes,
                                  std::span<const std::int64_t> strides,
                                  ExponentHistogram* histogram = nullptr);

}  // namespace nanquest
