#include "replay/trace/dtype_map.h"

#include <c10/core/ScalarType.h>

namespace nanquest::trace {

bool is_float(at::ScalarType type) {
  return c10::isFloatingType(type);
}

at::ScalarType target_type(at::ScalarType recorded, Precision precision) {
  const bool narrow = c10::isReducedFloatingType(recorded);
  switch (precision) {
    case Precision::as_recorded:
      break;
    case Precision::bf16:
      if (recorded == at::kHalf) return at::kBFloat16;
      break;
    case Precision::fp32:
      if (narrow) return at::kFloat;
      if (recorded == at::kComplexHalf) return at::kComplexFloat;
      break;
    case Precision::fp64:
      if (is_float(recorded)) return at::kDouble;
      if (c10::isComplexType(recorded)) return at::kComplexDouble;
      break;
  }
  return recorded;
}

at::ScalarType wider_type(at::ScalarType a, at::ScalarType b) {
  if (a == b) return a;
  // c10 refuses to promote fp8; every fp8 value is exact in both half and bfloat16.
  const bool fp8_a = c10::isFloat8Type(a), fp8_b = c10::isFloat8Type(b);
  if (fp8_a && fp8_b) return at::kHalf;
  if (fp8_a) return b;
  if (fp8_b) return a;
  return c10::promoteTypes(a, b);
}

at::ScalarType part_type(at::ScalarType type) {
  return c10::isComplexType(type) ? c10::toRealValueType(type) : type;
}

at::ScalarType complex_of(at::ScalarType part) {
  switch (part) {
    case at::kHalf:
      return at::kComplexHalf;
    case at::kDouble:
      return at::kComplexDouble;
    default:
      return at::kComplexFloat;
  }
}

std::string_view precision_name(Precision precision) {
  constexpr std::string_view names[] = {"as recorded", "bf16", "fp32", "fp64"};
  return names[static_cast<int>(precision)];
}

}  // namespace nanquest::trace
