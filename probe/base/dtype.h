/// DType: the element types a snapshot can hold, with numbers that are part of the file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "probe/base/check.h"

namespace nanquest {

/// Element type. The numbers are written to files: never renumber, only append.
enum class DType : std::uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  float8_e4m3fn = 4,
  float8_e5m2 = 5,
  int64 = 6,
  int32 = 7,
  int16 = 8,
  int8 = 9,
  uint8 = 10,
  boolean = 11,
  complex64 = 12,
  complex128 = 13,
  uint16 = 14,
  uint32 = 15,
  uint64 = 16,
};
inline constexpr int kDTypeCount = 17;

/// Index of a type in a table of all types.
constexpr std::size_t dtype_index(DType t) {
  const auto index = static_cast<std::size_t>(t);
  NANQUEST_CHECK(index < kDTypeCount, "number of an element type");
  return index;
}

/// Bytes of one element.
constexpr std::size_t dtype_size(DType t) {
  constexpr std::size_t sizes[kDTypeCount] = {8, 4, 2, 2, 1, 1, 8, 4, 2, 1, 1, 1, 8, 16, 2, 4, 8};
  return sizes[dtype_index(t)];
}

/// PyTorch's spelling without "torch.": "float16", "bool", …
constexpr std::string_view dtype_name(DType t) {
  constexpr std::string_view names[kDTypeCount] = {
      "float64",   "float32",    "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
      "int64",     "int32",      "int16",   "int8",     "uint8",         "bool",
      "complex64", "complex128", "uint16",  "uint32",   "uint64"};
  return names[dtype_index(t)];
}

/// The DType of that name, or nothing.
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  return std::nullopt;
}

/// True for the real floating-point types (complex ones are not).
constexpr bool dtype_is_float(DType t) {
  return static_cast<int>(t) <= 5;
}

/// True for the complex types, whose elements are two numbers of half the size.
constexpr bool dtype_is_complex(DType t) {
  return t == DType::complex64 || t == DType::complex128;
}

/// True for the types whose elements can be NaN or Inf.
constexpr bool dtype_has_nan(DType t) {
  return dtype_is_float(t) || dtype_is_complex(t);
}

}  // namespace nanquest
