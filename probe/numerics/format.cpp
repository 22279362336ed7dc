#include "probe/numerics/format.h"

#include <bit>
#include <cmath>

#include "probe/base/check.h"
#include "probe/numerics/scan_element.h"

namespace nanquest {
namespace {

constexpr FormatInfo kInfo[kFormatCount] = {
    {"fp64", 64, 11, 52, 1023, 0x1.fffffffffffffp+1023, 0x1p-1022, 0x1p-1074, true, 1023, -1022},
    {"fp32", 32, 8, 23, 127, 0x1.fffffep+127, 0x1p-126, 0x1p-149, true, 127, -126},
    {"tf32", 32, 8, 10, 127, 0x1.ffcp+127, 0x1p-126, 0x1p-136, true, 127, -126},
    {"fp16", 16, 5, 10, 15, 65504.0, 0x1p-14, 0x1p-24, true, 15, -14},
    {"bf16", 16, 8, 7, 127, 0x1.fep+127, 0x1p-126, 0x1p-133, true, 127, -126},
    {"fp8_e4m3", 8, 4, 3, 7, 448.0, 0x1p-6, 0x1p-9, false, 8, -6},
    {"fp8_e5m2", 8, 5, 2, 15, 57344.0, 0x1p-14, 0x1p-16, true, 15, -14},
};

template <class Layout>
double decode_as(std::uint64_t raw) {
  const auto bits = static_cast<typename Layout::Bits>(raw);
  const auto abs = Layout::magnitude(bits);
  std::uint64_t out;
  if (Layout::finite(abs)) {
    out = Layout::double_bits(abs);
  } else if (Layout::is_infinite(abs)) {
    out = LayoutFp64::kFirstBad;
  } else {
    // The payload moves to the top of double's mantissa; NaN becomes quiet, as in every conversion.
    constexpr std::uint64_t mantissa_mask = (std::uint64_t{1} << 52) - 1;
    out = LayoutFp64::kFirstBad | (std::uint64_t{1} << 51) |
          ((std::uint64_t{abs} << (52 - Layout::kMantissaBits)) & mantissa_mask);
  }
  return double_from_bits(out | (std::uint64_t{Layout::negative(bits)} << 63));
}

/// Layout of a format of at most 32 bits, for rounding.
struct Target {
  int exponent_bits;
  int mantissa_bits;
  int shift;  ///< the result's lowest bit (tf32 sits in the upper bits of fp32)
  bool has_infinity;
  int total_bits;
};

/// Rounds the magnitude of `value` (pattern without sign, not NaN) to `t` with integer arithmetic only.
std::uint64_t round_magnitude(const Target& t, std::uint64_t abs) {
  const std::uint64_t infinity = ((std::uint64_t{1} << t.exponent_bits) - 1) << t.mantissa_bits;
  // e4m3 uses the top exponent for numbers; its single NaN is all ones.
  const std::uint64_t first_bad =
      t.has_infinity ? infinity : infinity | ((std::uint64_t{1} << t.mantissa_bits) - 1);
  if (abs >= LayoutFp64::kFirstBad) return first_bad;
  const int field = static_cast<int>(abs >> 52);
  if (field == 0) return 0;  // double's subnormals are far below half of any target's smallest number
  const std::uint64_t mantissa = (abs & ((std::uint64_t{1} << 52) - 1)) | (std::uint64_t{1} << 52);
  const int bias = (1 << (t.exponent_bits - 1)) - 1;
  const int exponent = field - 1023;
  const int min_exponent = 1 - bias;
  // Bits of the mantissa that do not fit: more of them below the normal range.
  int drop = 52 - t.mantissa_bits;
  if (exponent < min_exponent) drop += min_exponent - exponent;
  if (drop > 54) return 0;
  const std::uint64_t kept = mantissa >> drop;
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << drop) - 1);
  const std::uint64_t half = std::uint64_t{1} << (drop - 1);
  const std::uint64_t up = rest > half || (rest == half && (kept & 1)) ? 1 : 0;
  // A carry out of the mantissa raises the exponent by itself: the fields are adjacent.
  const std::uint64_t base =
      exponent < min_exponent ? 0 : static_cast<std::uint64_t>(exponent + bias - 1) << t.mantissa_bits;
  const std::uint64_t result = base + kept + up;
  return result > first_bad ? first_bad : result;
}

std::uint64_t encode_as(const Target& t, double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = (bits >> 63) << (t.total_bits - 1);
  const std::uint64_t abs = LayoutFp64::magnitude(bits);
  std::uint64_t magnitude;
  if (abs > LayoutFp64::kFirstBad) {
    const std::uint64_t infinity = ((std::uint64_t{1} << t.exponent_bits) - 1) << t.mantissa_bits;
    magnitude = t.has_infinity ? infinity | (std::uint64_t{1} << (t.mantissa_bits - 1))
                               : infinity | ((std::uint64_t{1} << t.mantissa_bits) - 1);
  } else {
    magnitude = round_magnitude(t, abs);
  }
  return sign | (magnitude << t.shift);
}

constexpr Target kFp32{8, 23, 0, true, 32};

}  // namespace

const FormatInfo& info(Format format) {
  const auto index = static_cast<std::size_t>(format);
  NANQUEST_CHECK(index < kFormatCount, "number of a format");
  return kInfo[index];
}

std::optional<Format> format_of(DType type) {
  switch (type) {
    case DType::float64:
      return Format::fp64;
    case DType::float32:
      return Format::fp32;
    case DType::float16:
      return Format::fp16;
    case DType::bfloat16:
      return Format::bf16;
    case DType::float8_e4m3fn:
      return Format::fp8_e4m3;
    case DType::float8_e5m2:
      return Format::fp8_e5m2;
    default:
      return std::nullopt;
  }
}

double decode(Format format, std::uint64_t bits) {
  switch (format) {
    case Format::fp64:
      return std::bit_cast<double>(bits);
    case Format::fp32:
    case Format::tf32:
      return decode_as<LayoutFp32>(bits);
    case Format::fp16:
      return decode_as<LayoutFp16>(bits);
    case Format::bf16:
      return decode_as<LayoutBf16>(bits);
    case Format::fp8_e4m3:
      return decode_as<LayoutE4m3>(bits);
    case Format::fp8_e5m2:
      return decode_as<LayoutE5m2>(bits);
  }
  return 0;
}

std::uint64_t encode(Format format, double value) {
  if (format == Format::fp64) return std::bit_cast<std::uint64_t>(value);
  const std::uint64_t single = encode_as(kFp32, value);
  if (format == Format::fp32) return single;
  const double rounded = decode_as<LayoutFp32>(single);
  switch (format) {
    case Format::tf32:
      return encode_as({8, 10, 13, true, 32}, rounded);
    case Format::fp16:
      return encode_as({5, 10, 0, true, 16}, rounded);
    case Format::bf16:
      return encode_as({8, 7, 0, true, 16}, rounded);
    case Format::fp8_e4m3:
      return encode_as({4, 3, 0, false, 8}, rounded);
    default:
      return encode_as({5, 2, 0, true, 8}, rounded);
  }
}

double round_to(Format format, double value) {
  return decode(format, encode(format, value));
}

double headroom_bits(Format format, double amax) {
  const double max = info(format).max_finite;
  const double ratio = max / amax;
  // The quotient is exact for powers of two, but it overflows for a tiny amax.
  return std::isinf(ratio) && amax != 0 ? std::log2(max) - std::log2(amax) : std::log2(ratio);
}

}  // namespace nanquest
