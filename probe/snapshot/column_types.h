/// Which stored type a C++ field has, and how many values a coded field may take. Internal to this room.
#pragma once

#include <cstdint>
#include <type_traits>

#include "probe/snapshot/model.h"

namespace nanquest {

/// The stored type of a field of type T: enums and bool are stored as uint8.
template <class T>
using Stored = std::conditional_t<std::is_enum_v<T> || std::is_same_v<T, bool>, std::uint8_t, T>;

/// The dtype of a stored type.
template <class T>
constexpr DType stored_dtype() {
  using S = Stored<T>;
  if constexpr (std::is_same_v<S, std::uint8_t>)
    return DType::uint8;
  else if constexpr (std::is_same_v<S, std::int32_t>)
    return DType::int32;
  else if constexpr (std::is_same_v<S, std::uint32_t>)
    return DType::uint32;
  else if constexpr (std::is_same_v<S, std::int64_t>)
    return DType::int64;
  else if constexpr (std::is_same_v<S, std::uint64_t>)
    return DType::uint64;
  else {
    static_assert(std::is_same_v<S, double>);
    return DType::float64;
  }
}

/// Number of legal codes of an enum or bool: the reader refuses values at or above it.
template <class T>
constexpr int code_count() {
  if constexpr (std::is_same_v<T, bool>)
    return 2;
  else if constexpr (std::is_same_v<T, DType>)
    return kDTypeCount;
  else if constexpr (std::is_same_v<T, Phase>)
    return 4;
  else if constexpr (std::is_same_v<T, SlotOrigin>)
    return 8;
  else if constexpr (std::is_same_v<T, ArgKind>)
    return 11;
  else {
    static_assert(std::is_same_v<T, Gate>);
    return 4;
  }
}

}  // namespace nanquest
