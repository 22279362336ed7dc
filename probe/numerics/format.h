/// Number formats of mixed-precision training: limits, rounding, exponents. No torch.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "probe/base/dtype.h"

namespace nanquest {

/// A floating-point format. tf32 has no DType: it is fp32 storage whose products are rounded.
enum class Format : std::uint8_t { fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2 };
inline constexpr int kFormatCount = 7;

/// The constants of one format, all exact in double.
struct FormatInfo {
  std::string_view name;  ///< "fp16"
  int storage_bits;       ///< 16
  int exponent_bits;      ///< 5
  int mantissa_bits;      ///< explicit ones: 10
  int bias;               ///< 15
  double max_finite;      ///< 65504
  double min_normal;      ///< 2^-14
  double min_subnormal;   ///< 2^-24
  bool has_infinity;      ///< false for e4m3 (OCP "fn": overflow gives NaN)
  int max_exponent;       ///< floor(log2(max_finite))
  int min_exponent;       ///< log2(min_normal)
};

/// Constants of `format`.
const FormatInfo& info(Format format);

/// The format of a DType's elements; nothing for integers, bool and complex.
std::optional<Format> format_of(DType type);

/// Exact value of the bit pattern (low `storage_bits` bits; fp64 uses all 64).
double decode(Format format, std::uint64_t bits);

/// Round to nearest, ties to even, as PyTorch's cast from float32/float64 does; overflow gives Inf (NaN for
/// e4m3, where PyTorch 2.15 saturates to 448). Narrow formats round to float32 first, as PyTorch does with a
/// double.
std::uint64_t encode(Format format, double value);

/// `decode(encode(value))`: the value as the format would hold it.
double round_to(Format format, double value);

/// log2(max_finite / amax): bits left before overflow; +inf if amax is 0, negative beyond the range.
double headroom_bits(Format format, double amax);

}  // namespace nanquest
