/// numbers: the numbers among an op's arguments, found and put otherwise.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>

namespace nanquest {

/// As what a number may stand among the arguments of an op. Each kind includes those before it.
enum class NumberAs : std::uint8_t {
  real,         ///< as programs write it with a point: no whole number, no tensor that a model computed
  literal,      ///< as programs write it: a whole number or not
  one_element,  ///< a tensor of one element too, whoever made it
};

/// True if `value` is this number (NaN is the same as NaN); never of a complex one.
bool is_number(const c10::IValue& value, double number, NumberAs as);

/// `value` with `number` in the place of the one in it, as real as that: a number, a tensor of one element
/// (of fp64 if it was of whole numbers), a number wrapped in a tensor. None becomes the number; what holds
/// none is unchanged.
c10::IValue with_number(const c10::IValue& value, double number);

}  // namespace nanquest
