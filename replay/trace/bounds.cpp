#include "replay/trace/bounds.h"

#include <algorithm>
#include <cmath>

namespace nanquest::trace {
namespace {

/// Half of the digits that the format's mantissa has: the root of its epsilon.
double half_of_the_digits(DType type, bool tf32) {
  switch (type) {
    case DType::float64:
    case DType::complex128:
      return 0x1p-26;
    case DType::float32:
    case DType::complex64:
      return std::sqrt(tf32 ? 0x1p-10 : 0x1p-23);
    case DType::float16:
      return std::sqrt(0x1p-10);
    case DType::bfloat16:
      return std::sqrt(0x1p-7);
    case DType::float8_e4m3fn:
      return std::sqrt(0x1p-3);
    case DType::float8_e5m2:
      return std::sqrt(0x1p-2);
    default:
      return 0;
  }
}

double relative(double a, double b) {
  const double largest = std::max(std::abs(a), std::abs(b));
  if (a == b || largest == 0) return 0;
  const double difference = std::abs(a - b) / largest;
  return std::isfinite(difference) ? difference : kOtherKind;
}

}  // namespace

double distance(DType type, const StatsRow& recorded, const StatsRow& now) {
  if (recorded.count != now.count || recorded.nan != now.nan || recorded.pos_inf != now.pos_inf ||
      recorded.neg_inf != now.neg_inf)
    return kOtherKind;
  const double largest = relative(recorded.amax, now.amax);
  if (dtype_has_nan(type))
    return std::max(largest, relative(std::sqrt(recorded.sum_squares), std::sqrt(now.sum_squares)));
  if (recorded.count == 0) return largest;
  const double zeros = std::abs(static_cast<double>(recorded.zero) - static_cast<double>(now.zero));
  return std::max(largest, zeros / static_cast<double>(recorded.count));
}

StepBound::StepBound(const std::map<std::string, std::string>& environment) {
  const auto entry = environment.find("tf32_cublas");
  // Convolutions have a switch of their own, which is on unless a program turns it off: it is not recorded.
  tf32_ = entry != environment.end() && entry->second != "false";
}

void StepBound::use(DType type) {
  bound_ = std::max(bound_, half_of_the_digits(type, tf32_));
}

}  // namespace nanquest::trace
